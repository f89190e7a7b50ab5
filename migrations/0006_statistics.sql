-- Statistics: how many events of each type came in each hour, and which hours were unusual.
-- compatible-with: 1

-- Counts ----------------------------------------------------------------------------------------------------------

-- Events by the hour (UTC) in which they were received, with what has become of them by now.
-- What is left of `received` is pending. An hour in which nothing came has no row.
create table ukemi.event_hours (
  source text not null,
  type text not null,
  hour timestamptz not null,
  -- '' for events of nobody in particular
  tenant text not null default '',
  received integer not null,
  success integer not null,
  failed integer not null,
  skipped integer not null,
  unrouted integer not null,
  last_received_at timestamptz not null,
  primary key (source, type, hour, tenant),
  constraint event_hours_counts check (
    least(success, failed, skipped, unrouted) >= 0 and received >= success + failed + skipped + unrouted
  )
);
create index event_hours_by_hour on ukemi.event_hours (hour);

-- Hours that must be counted (again). Written only under the lock of the count.
create table ukemi.stale_hours (
  hour timestamptz primary key
);

-- Events whose outcome changed without a new processed_at to find it by: replayed, revived or routed events are pending
-- again. Only such rare changes are noted; receiving and settling write nothing here.
-- No key: two transactions that note the same event must not wait for each other.
create table ukemi.outcome_changes (
  event uuid not null
);

create function ukemi.note_outcome_change() returns trigger
  language plpgsql
  as $$
begin
  insert into ukemi.outcome_changes (event) values (new.event);
  return null;
end $$;

create trigger event_outcomes_noted after update on ukemi.event_outcomes
  for each row
  when (
    old.status <> new.status
    and (new.processed_at is null or new.processed_at is not distinct from old.processed_at)
  )
  execute function ukemi.note_outcome_change();

-- One row: how far the count has come, on the database's clock.
create table ukemi.counting (
  one boolean primary key default true check (one),
  -- when changes were last looked for
  found_until timestamptz,
  -- transactions from this number on were not under way then
  found_xmax xid8,
  -- every change before this has been found, also those of transactions that committed late
  sure_until timestamptz,
  -- everything until then has been counted
  counted_until timestamptz,
  -- since when changes have been looked for without a break of an hour: what came in a break says nothing
  running_since timestamptz,
  -- hours before this were compared with what is usual, or never will be
  judged_until timestamptz
);
insert into ukemi.counting default values;

-- Changes are found by their time: the newest pages must not wait for a vacuum to be found by it.
alter index ukemi.events_by_time set (autosummarize = on);
alter index ukemi.event_outcomes_by_time set (autosummarize = on);

-- Anomalies -------------------------------------------------------------------------------------------------------

-- A run of hours in which a type came more or less often than is usual, or not at all. `hour` is the first of them.
create table ukemi.anomalies (
  id bigint generated always as identity primary key,
  hour timestamptz not null,
  source text not null,
  type text not null,
  kind text not null,
  -- in the first hour; for a silence, in all hours since the last event
  received integer not null,
  expected_low integer not null,
  expected_high integer not null,
  noticed_at timestamptz not null default ukemi.now(),
  -- the first hour that was usual again; null while it lasts
  ended_at timestamptz,
  constraint anomalies_once unique (hour, source, type, kind),
  constraint anomalies_kind check (kind in ('high', 'low', 'silent'))
);
-- one at a time, whatever else happens to the type
create unique index anomalies_open on ukemi.anomalies (source, type) where ended_at is null;
