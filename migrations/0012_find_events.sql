-- Duplicates are found inside the statement that stores: it calls this only where an event was there already.
-- compatible-with: 1

-- The events of these identities, by their places, with whether one of their jobs is dead. A function, because what it takes to
-- make its query ready is then paid for by duplicates only; and a volatile one, because its query has a snapshot of its own:
-- it sees what others stored while the calling statement waited for them, and what that statement has stored itself.
create function ukemi.find_events(event_ids text[], sources text[], accounts text[], livemodes boolean[])
  returns json
  language plpgsql
  volatile
  as $$
begin
  return (
    select coalesce(json_agg(json_build_array(a.place, e.id, e.has_dead)), '[]')
    from unnest(event_ids, sources, accounts, livemodes) with ordinality as a (event_id, source, account, livemode, place)
    -- looked up one by one: the query may be planned while the table is empty, and a join would read all of it ever after
    cross join lateral (
      select x.id, exists (select from ukemi.jobs j where j.event = x.id and j.state = 'dead') as has_dead
      from ukemi.events x
      where x.event_id = a.event_id and x.account = a.account and x.livemode = a.livemode
        and x.source || '' = a.source -- keeps the index by source out of sight
      limit 1
    ) as e
  );
end $$;
