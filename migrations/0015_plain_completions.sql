-- Completions that are one plain statement: most jobs succeed at their first try, and say nothing beside their writes.
-- compatible-with: 1

-- What a statement calls where the fence fails: the transaction is rolled back, whether or not anyone looks.
create function ukemi.lease_lost() returns boolean
  language plpgsql
  as $$
begin
  raise exception 'the lease was lost' using errcode = 'UK001';
end $$;
