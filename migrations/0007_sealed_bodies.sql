-- Sealed bodies: the keys that bodies are encrypted with, and the erasure of one subject.
-- compatible-with: 1

-- Keys -----------------------------------------------------------------------------------------------------------

-- One for each month, named after it. What lies here is sealed itself, by a master key that only the processes know.
create table ukemi.data_keys (
  id text primary key,
  wrapped bytea not null,
  -- the name of that master key; a re-wrap changes both
  wrapped_by text not null,
  created_at timestamptz not null default ukemi.now()
);
-- without its key no body of the month can be read again
create trigger data_keys_kept before delete on ukemi.data_keys
  for each row execute function ukemi.refuse_change();
create trigger data_keys_never_truncated before truncate on ukemi.data_keys
  for each statement execute function ukemi.refuse_change();
alter table ukemi.data_keys enable always trigger data_keys_kept, enable always trigger data_keys_never_truncated;

-- Erasure --------------------------------------------------------------------------------------------------------

-- Events whose body was erased: it is not lost, and it does not come back.
create table ukemi.erasures (
  event uuid primary key,
  erased_at timestamptz not null default ukemi.now()
);
create trigger erasures_append_only before update or delete on ukemi.erasures
  for each row execute function ukemi.refuse_change();
create trigger erasures_never_truncated before truncate on ukemi.erasures
  for each statement execute function ukemi.refuse_change();
alter table ukemi.erasures enable always trigger erasures_append_only, enable always trigger erasures_never_truncated;

-- Volatile on purpose: it looks anew each time. A statement that has waited for an erasure's lock still sees the tables as
-- they were before; this sees them as they are.
create function ukemi.is_erased(event uuid) returns boolean
  language sql volatile
  as $$ select exists (select from ukemi.erasures x where x.event = $1) $$;

-- Views ----------------------------------------------------------------------------------------------------------

-- As before, but a sealed body is not even tried as JSON: its payload is null.
create or replace view ukemi.webhook_events as
  select
    e.id,
    e.event_id,
    e.type as event_type,
    e.source,
    o.billing_id,
    o.office_id,
    case when b.key_id is null then ukemi.json_or_null(b.body) end as payload,
    o.processed_at,
    coalesce(o.status, 'pending') as status,
    o.error_message,
    e.received_at as created_at
  from ukemi.events e
  left join ukemi.event_outcomes o on o.event = e.id
  left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at;

create or replace view ukemi.failed_webhook_events as
  select
    e.event_id,
    case when b.key_id is null then ukemi.json_or_null(b.body) end as payload,
    coalesce(j.error_message, j.error_class, 'unknown') as error,
    j.finished_at as created_at
  from ukemi.jobs j
  join ukemi.events e on e.id = j.event
  left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at
  where j.state = 'dead';
