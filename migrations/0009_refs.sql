-- Refs that are found at receipt lie in the event's own row: their two indexes cost a third of the whole receipt.
-- compatible-with: 1

-- One kind for each id. What handlers add later, and what came before this migration, is in event_refs.
alter table ukemi.events
  add column ref_kinds text[],
  add column ref_ids text[],
  add constraint events_refs check (cardinality(ref_kinds) = cardinality(ref_ids));
-- New entries wait in a list of the index, which a duty empties every few seconds (else whoever adds the last one).
create index events_by_ref on ukemi.events using gin (ref_ids) with (fastupdate = on, gin_pending_list_limit = 32768)
  where ref_ids is not null;

-- The events that carry an id, of any kind.
create function ukemi.events_with_ref(of_ref text) returns setof uuid
  language sql stable
  as $$
    select e.id from ukemi.events e where e.ref_ids @> array[of_ref]
    union
    select r.event from ukemi.event_refs r where r.ref = of_ref
  $$;

-- Everything that an event carries.
create function ukemi.refs_of(of_event uuid) returns table (kind text, ref text)
  language sql stable
  as $$
    select u.kind, u.ref
    from ukemi.events e, unnest(e.ref_kinds, e.ref_ids) as u (kind, ref)
    where e.id = of_event
    union
    select r.kind, r.ref from ukemi.event_refs r where r.event = of_event
  $$;
