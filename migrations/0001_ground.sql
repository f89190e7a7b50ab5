-- The ground: what was received (events, bodies, refs, outcomes), the work it causes (subscriptions, jobs),
-- what was refused (rejections), and what was done by whom (audit_log).
-- compatible-with: 1

-- Time ------------------------------------------------------------------------------------------------------------

-- One row: how far ukemi.now() is moved from the server's clock. Only tests move it; `ukemi doctor` complains if it is not 0.
create table ukemi.clock (
  one boolean primary key default true check (one),
  shift interval not null default '0'
);
insert into ukemi.clock default values;

create function ukemi.now() returns timestamptz
  language sql stable
  as $$ select clock_timestamp() + (select shift from ukemi.clock) $$;

-- Append-only -----------------------------------------------------------------------------------------------------

-- Holds for everyone, the owner included. Retention deletes under a flag that ends with its transaction.
create function ukemi.refuse_change() returns trigger
  language plpgsql
  as $$
begin
  if tg_op = 'DELETE' and current_setting('ukemi.retention', true) = 'on' then
    return old;
  end if;
  raise exception 'ukemi.% is append-only: % is refused', tg_table_name, tg_op
    using errcode = 'restrict_violation';
end $$;

-- Events ----------------------------------------------------------------------------------------------------------

create table ukemi.events (
  id uuid primary key,
  source text not null,
  account text not null default '',
  livemode boolean not null default true,
  event_id text not null,
  type text not null,
  tenant text,
  received_at timestamptz not null,
  occurred_at timestamptz,
  origin text not null default 'webhook',
  secret_fingerprint text,
  request_id text,
  traceparent text,
  body_sha256 bytea not null,
  body_bytes integer not null,
  -- event_id first: the same index finds an event by the provider's id alone
  constraint events_identity unique (event_id, source, account, livemode),
  constraint events_bounded check (
    octet_length(event_id) between 1 and 255
    and octet_length(source) between 1 and 64
    and octet_length(account) <= 255
    and octet_length(type) between 1 and 255
    and octet_length(tenant) between 1 and 255
  ),
  constraint events_origin check (origin in ('webhook', 'reconcile', 'api', 'test'))
);
create index events_by_type on ukemi.events (type, id);
create index events_by_source on ukemi.events (source, id);
create index events_by_time on ukemi.events using brin (received_at);
create index events_by_tenant on ukemi.events (tenant, id) where tenant is not null;

create trigger events_append_only before update or delete on ukemi.events
  for each row execute function ukemi.refuse_change();
create trigger events_never_truncated before truncate on ukemi.events
  for each statement execute function ukemi.refuse_change();
-- always: also in a session that replays a replication stream
alter table ukemi.events enable always trigger events_append_only, enable always trigger events_never_truncated;

-- Raw bytes, by month of receipt: retention drops whole months. The primary key must hold the partition column.
create table ukemi.event_bodies (
  event uuid not null,
  received_at timestamptz not null,
  body bytea not null,
  headers text not null,
  primary key (event, received_at)
) partition by range (received_at);

create trigger event_bodies_append_only before update or delete on ukemi.event_bodies
  for each row execute function ukemi.refuse_change();

-- The net below the months made ahead: an event is stored even if nobody made its month.
create table ukemi.event_bodies_default partition of ukemi.event_bodies default;
create trigger event_bodies_never_truncated before truncate on ukemi.event_bodies_default
  for each statement execute function ukemi.refuse_change();
alter table ukemi.event_bodies_default
  enable always trigger event_bodies_append_only, enable always trigger event_bodies_never_truncated;

-- Makes this month and the given number of months ahead; returns how many were missing.
-- A month is attached under a lock that any long reader holds up: rather give up and come again than make others wait.
create function ukemi.make_body_months(ahead integer) returns integer
  language plpgsql
  set lock_timeout = '1s'
  set datestyle = 'ISO'
  set timezone = 'UTC'
  as $$
declare
  first_month timestamptz := date_trunc('month', ukemi.now());
  month_start timestamptz;
  month_end timestamptz;
  part text;
  made integer := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('ukemi.make_body_months', 0));
  for i in 0..ahead loop
    month_start := first_month + make_interval(months => i);
    month_end := first_month + make_interval(months => i + 1);
    part := 'event_bodies_' || to_char(month_start, 'YYYYMM');
    continue when to_regclass('ukemi.' || part) is not null;
    execute format('create table ukemi.%I (like ukemi.event_bodies including defaults including constraints)', part);
    -- rows that fell into the net move over, else the month could not be attached
    perform set_config('ukemi.retention', 'on', true);
    execute format(
      'with moved as (delete from ukemi.event_bodies_default where received_at >= %L and received_at < %L returning *)
       insert into ukemi.%I select * from moved', month_start, month_end, part);
    perform set_config('ukemi.retention', '', true);
    execute format('alter table ukemi.event_bodies attach partition ukemi.%I for values from (%L) to (%L)',
      part, month_start, month_end);
    execute format('create trigger event_bodies_never_truncated before truncate on ukemi.%I
      for each statement execute function ukemi.refuse_change()', part);
    execute format('alter table ukemi.%I enable always trigger event_bodies_append_only,
      enable always trigger event_bodies_never_truncated', part);
    made := made + 1;
  end loop;
  return made;
end $$;
select ukemi.make_body_months(3);

create table ukemi.event_refs (
  event uuid not null,
  kind text not null,
  ref text not null,
  primary key (ref, kind, event)
);
create index event_refs_by_event on ukemi.event_refs (event);

-- No row: pending. Written at receipt where there is nothing to do, else in the handler's commit.
create table ukemi.event_outcomes (
  event uuid primary key,
  status text not null,
  error_message text,
  processed_at timestamptz,
  billing_id text,
  office_id text,
  constraint event_outcomes_status check (status in ('success', 'failed', 'skipped', 'unrouted'))
);
create index event_outcomes_by_status on ukemi.event_outcomes (status, event);
create index event_outcomes_by_time on ukemi.event_outcomes using brin (processed_at);
create index event_outcomes_by_billing on ukemi.event_outcomes (billing_id, event) where billing_id is not null;
create index event_outcomes_by_office on ukemi.event_outcomes (office_id, event) where office_id is not null;

-- Work ------------------------------------------------------------------------------------------------------------

-- A handler's standing claim on event types. Read inside the statement that stores an event, so that every
-- receiver makes the same jobs, whichever process knows the handler.
create table ukemi.subscriptions (
  name text primary key,
  source text not null,
  pattern text not null,
  -- the pattern for LIKE: `*` is the only wildcard a person writes
  type_like text not null generated always as (
    replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
  ) stored,
  queue text not null default 'default',
  priority smallint not null default 0,
  max_attempts integer not null default 4 check (max_attempts > 0),
  policy text not null default 'quick',
  active boolean not null default true,
  registered_at timestamptz not null default ukemi.now()
);

create table ukemi.jobs (
  id bigint generated always as identity primary key,
  queue text not null,
  kind text not null,
  subscription text,
  event uuid,
  tenant text,
  key text,
  state text not null,
  priority smallint not null default 0,
  attempt integer not null default 0,
  max_attempts integer not null,
  recoveries integer not null default 0,
  policy text not null,
  run_at timestamptz not null,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  worker uuid,
  error_class text,
  error_message text,
  constraint jobs_state check (state in ('scheduled', 'ready', 'waiting', 'running', 'done', 'dead', 'cancelled')),
  constraint jobs_lease check (
    (state = 'running') = (lease_until is not null)
    and (state = 'running') = (lease_token is not null)
    and (state = 'running') = (worker is not null)
  ),
  constraint jobs_finished check ((state in ('done', 'dead', 'cancelled')) = (finished_at is not null)),
  constraint jobs_counts check (attempt >= 0 and recoveries >= 0 and attempt <= max_attempts),
  constraint jobs_handler check (kind <> 'handler' or (event is not null and subscription is not null))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- One job for a handler and an event, however often it is routed.
create unique index jobs_by_event on ukemi.jobs (event, subscription) where event is not null;
-- Which events are pending, without looking at those that are not.
create index jobs_unfinished on ukemi.jobs (event) where state in ('scheduled', 'ready', 'waiting', 'running');
create index jobs_ready on ukemi.jobs (queue, priority, run_at, id) where state = 'ready';
create index jobs_scheduled on ukemi.jobs (run_at) where state = 'scheduled';
create index jobs_running on ukemi.jobs (lease_until) where state = 'running';
create index jobs_dead on ukemi.jobs (finished_at, id) where state = 'dead';

-- Refused requests and the audit ----------------------------------------------------------------------------------

-- Bounded: the oldest rows go when new ones come.
create table ukemi.rejections (
  id bigint generated always as identity primary key,
  received_at timestamptz not null default ukemi.now(),
  source text not null,
  reason text not null,
  diagnosis text not null,
  address text,
  request_id text not null,
  headers text not null,
  body_bytes integer not null,
  body_sample bytea not null
);

create table ukemi.audit_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default ukemi.now(),
  actor text not null,
  role text not null,
  action text not null,
  target text,
  tenant text,
  details jsonb not null default '{}',
  dedupe_key text unique
);
create index audit_log_by_target on ukemi.audit_log (target, id) where target is not null;
create trigger audit_log_append_only before update or delete on ukemi.audit_log
  for each row execute function ukemi.refuse_change();
create trigger audit_log_never_truncated before truncate on ukemi.audit_log
  for each statement execute function ukemi.refuse_change();
alter table ukemi.audit_log enable always trigger audit_log_append_only, enable always trigger audit_log_never_truncated;

-- Views for people's SQL ------------------------------------------------------------------------------------------

-- Bodies are bytes: some are not JSON, and jsonb refuses some that are (\u0000, lone surrogates). Those give null.
create function ukemi.json_or_null(body bytea) returns jsonb
  language plpgsql immutable
  as $$
begin
  return convert_from(body, 'UTF8')::jsonb;
exception when others then
  return null;
end $$;

create view ukemi.webhook_events as
  select
    e.id,
    e.event_id,
    e.type as event_type,
    e.source,
    o.billing_id,
    o.office_id,
    ukemi.json_or_null(b.body) as payload,
    o.processed_at,
    coalesce(o.status, 'pending') as status,
    o.error_message,
    e.received_at as created_at
  from ukemi.events e
  left join ukemi.event_outcomes o on o.event = e.id
  left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at;

create view ukemi.failed_webhook_events as
  select
    e.event_id,
    ukemi.json_or_null(b.body) as payload,
    coalesce(j.error_message, j.error_class, 'unknown') as error,
    j.finished_at as created_at
  from ukemi.jobs j
  join ukemi.events e on e.id = j.event
  left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at
  where j.state = 'dead';
