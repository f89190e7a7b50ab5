-- Work: who does it (workers), how it is held (leases, keys, queues), what was tried (attempts), and how it ends.
-- compatible-with: 1

-- Workers ---------------------------------------------------------------------------------------------------------

-- One row for each time a process registers. While it lives it holds a session's advisory lock on its number,
-- which the server frees the moment the process dies.
create table ukemi.workers (
  id uuid primary key,
  number integer generated always as identity unique,
  host text not null,
  pid integer not null,
  version text not null,
  handlers text[] not null,
  queues text[] not null,
  -- false behind a transaction pooler, where no session can be held: only not being heard of tells then
  has_session boolean not null,
  lease_ms integer not null,
  started_at timestamptz not null default ukemi.now(),
  seen_at timestamptz not null default ukemi.now(),
  -- since when its lock has been seen to be free; a short grace lets a worker that only lost its connection come back
  missing_since timestamptz,
  ended_at timestamptz,
  end_reason text,
  constraint workers_end check ((ended_at is null) = (end_reason is null)),
  constraint workers_reason check (end_reason in ('stopped', 'replaced', 'lost'))
);
create index workers_live on ukemi.workers (number) where ended_at is null;

-- Queues ----------------------------------------------------------------------------------------------------------

-- Only queues that somebody has spoken of; one without a row is open.
create table ukemi.queues (
  name text primary key,
  paused boolean not null default false,
  reason text,
  changed_at timestamptz not null default ukemi.now()
);

-- Subscriptions and jobs ------------------------------------------------------------------------------------------

alter table ukemi.subscriptions
  -- jobs of one key run one at a time: `tenant`, or the kind of a ref such as `payment_intent`
  add column key_by text,
  -- and in the order of their arrival, also while the first of them is being retried
  add column ordered boolean not null default false;

alter table ukemi.jobs
  add column dedupe_key text,
  add column ordered boolean not null default false,
  -- the one job of a key that may run; the others wait
  add column key_held boolean not null default false,
  -- since when it has been waiting for something that had not happened yet
  add column not_yet_since timestamptz,
  -- why it is dead
  add column death text,
  -- how often a sender's resend brought it back to life
  add column revivals smallint not null default 0,
  -- how often in a row a try was given back through no fault of its handler
  add column returns integer not null default 0;

update ukemi.jobs set death = 'exhausted' where state = 'dead';

alter table ukemi.jobs
  add constraint jobs_death check (
    (state = 'dead') = (death is not null)
    and death in ('exhausted', 'terminal', 'crashed', 'overdue')
  ),
  add constraint jobs_key check (
    (not key_held or (key is not null and state in ('ready', 'running', 'scheduled')))
    and (key_held or key is null or state not in ('ready', 'running'))
  ),
  add constraint jobs_waiting check (state <> 'waiting' or key is not null),
  add constraint jobs_task check (kind <> 'task' or (event is null and subscription is not null));

-- Handler first: a worker walks only the jobs that it has handlers for, whatever others have left behind.
-- Then tenants, so that a step from one to the next skips the thousand jobs that one of them may have.
drop index ukemi.jobs_ready;
create index jobs_ready on ukemi.jobs (queue, subscription, priority desc, coalesce(tenant, ''), run_at, id)
  where state = 'ready' and recoveries = 0;
-- A job that was running when its worker died is claimed alone: it may be what killed it.
create index jobs_alone on ukemi.jobs (queue, priority desc, run_at, id)
  where state = 'ready' and recoveries > 0;
create index jobs_by_worker on ukemi.jobs (worker) where state = 'running';
create index jobs_waiting on ukemi.jobs (queue, key, run_at, id) where state = 'waiting';
create unique index jobs_key_holder on ukemi.jobs (queue, key) where key_held;
create unique index jobs_dedupe on ukemi.jobs (subscription, coalesce(tenant, ''), dedupe_key)
  where dedupe_key is not null;
create index jobs_dead_by_class on ukemi.jobs (error_class, id) where state = 'dead';

-- What a job that belongs to no event is about. Text, not jsonb: it refuses or changes legal JSON.
create table ukemi.job_payloads (
  job bigint primary key,
  payload text not null
);

-- One row for each try that did not simply succeed the first time.
create table ukemi.attempts (
  id bigint generated always as identity primary key,
  job bigint not null,
  number integer not null,
  outcome text not null,
  error_class text,
  error_message text,
  error_stack text,
  started_at timestamptz,
  ended_at timestamptz not null default ukemi.now(),
  duration_ms double precision,
  worker uuid,
  trace_id text,
  constraint attempts_outcome check (
    outcome in ('done', 'retry', 'not_yet', 'dead', 'returned', 'crashed')
  )
);
create index attempts_by_job on ukemi.attempts (job, id);

-- An event whose handlers are not all done may have our own ids already.
alter table ukemi.event_outcomes
  drop constraint event_outcomes_status,
  add constraint event_outcomes_status check (status in ('pending', 'success', 'failed', 'skipped', 'unrouted'));

-- Which key a body and its headers are sealed with; null where they lie as they came.
alter table ukemi.event_bodies add column key_id text;

-- Claiming --------------------------------------------------------------------------------------------------------

-- Leases up to `most` ready jobs of a queue to a worker that has these handlers. Higher priorities first; within one,
-- tenants take turns, beginning after the one where the last claim ended; of a tenant the oldest.
-- With `alone`, one job that was recovered before.
create function ukemi.claim_jobs(
  in_queue text,
  handlers text[],
  most integer,
  alone boolean,
  after_tenant text,
  by_worker uuid,
  token uuid,
  lease_ms integer
) returns table (
    id bigint, queue text, kind text, handler text, tenant text, key text, attempt integer, max_attempts integer,
    recoveries integer, waited_ms double precision, siblings integer, payload text,
    event uuid, source text, account text, livemode boolean, event_id text, type text, received_ms double precision,
    traceparent text, body bytea, headers text, key_id text
  )
  language plpgsql
  rows 20
  -- fresh tables have no statistics, and old snapshots mislead them: the partial indexes are always right here
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  -- before PostgreSQL 18 a plan that is only discouraged costs so much that it would be compiled, at 15 ms a time
  set jit = off
  as $$
#variable_conflict use_column
declare
  level smallint := 32767;
  tenants text[];
  at_tenant text;
  room integer;
  share integer;
  more bigint[];
  taken bigint[] := '{}';
begin
  if most < 1 or exists (select from ukemi.queues q where q.name = in_queue and q.paused) then
    return;
  end if;

  if alone then
    taken := array(
      select j.id
      from ukemi.jobs j
      where j.queue = in_queue and j.state = 'ready' and j.recoveries > 0 and j.subscription = any(handlers)
      order by j.priority desc, j.run_at, j.id
      limit 1
      for update skip locked
    );
  end if;

  while not alone and cardinality(taken) < most loop
    level := (
      select max(x.priority)
      from unnest(handlers) as h (name)
      cross join lateral (
        select j.priority
        from ukemi.jobs j
        where j.queue = in_queue and j.subscription = h.name and j.state = 'ready' and j.recoveries = 0
          and j.priority <= level
        order by j.priority desc
        limit 1
      ) as x
    );
    exit when level is null;

    -- the tenants that have jobs of this priority: those behind the last one served, then from the beginning to it;
    -- '' stands for jobs of nobody in particular
    tenants := '{}';
    for pass in 1..2 loop
      at_tenant := case when pass = 1 then after_tenant else '' end;
      if pass = 2 and cardinality(tenants) < most then
        tenants := array_append(tenants, '');
      end if;
      while cardinality(tenants) < most loop
        at_tenant := (
          select min(x.tenant)
          from unnest(handlers) as h (name)
          cross join lateral (
            select coalesce(j.tenant, '') as tenant
            from ukemi.jobs j
            where j.queue = in_queue and j.subscription = h.name and j.state = 'ready' and j.recoveries = 0
              and j.priority = level and coalesce(j.tenant, '') > at_tenant
            order by coalesce(j.tenant, '')
            limit 1
          ) as x
        );
        exit when at_tenant is null or (pass = 2 and at_tenant > after_tenant);
        tenants := array_append(tenants, at_tenant);
      end loop;
    end loop;

    -- an equal share for each; what one leaves, those after it may have, and in the second round the first ones too
    for round in 1..2 loop
      for i in 1..cardinality(tenants) loop
        room := most - cardinality(taken);
        exit when room = 0;
        share := case round when 1 then ceil(room::numeric / (cardinality(tenants) - i + 1)) else room end;
        more := array(
          select x.id
          from unnest(handlers) as h (name)
          cross join lateral (
            select j.id, j.run_at
            from ukemi.jobs j
            where j.queue = in_queue and j.subscription = h.name and j.state = 'ready' and j.recoveries = 0
              and j.priority = level and coalesce(j.tenant, '') = tenants[i]
              and j.id <> all(taken)
            order by j.run_at, j.id
            limit share
            for update skip locked
          ) as x
          order by x.run_at, x.id
          limit share
        );
        taken := taken || more;
      end loop;
    end loop;
    exit when level = -32768;
    level := level - 1;
  end loop;

  -- Everything a handler needs to know, read here: each statement of this function has a snapshot of its own, newer than
  -- that of the statement which calls it, which might not see the events of the jobs claimed.
  return query
    with claimed as (
      update ukemi.jobs j
      set state = 'running',
        lease_until = ukemi.now() + make_interval(secs => lease_ms / 1000.0),
        lease_token = token,
        worker = by_worker,
        -- one that runs alone has to wait until its neighbours are finished
        started_at = case when alone then null else ukemi.now() end
      where j.id = any(taken)
      returning j.*
    )
    select
      j.id, j.queue, j.kind, j.subscription, j.tenant, j.key, j.attempt, j.max_attempts, j.recoveries,
      extract(epoch from ukemi.now() - j.run_at)::double precision * 1000,
      (select count(*)::integer from ukemi.jobs s where s.event = j.event),
      p.payload,
      e.id, e.source, e.account, e.livemode, e.event_id, e.type,
      extract(epoch from e.received_at)::double precision * 1000,
      e.traceparent, b.body, b.headers, b.key_id
    from claimed j
    left join ukemi.events e on e.id = j.event
    left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at
    left join ukemi.job_payloads p on p.job = j.id
    -- as they were taken: the last one says where the next claim begins
    order by array_position(taken, j.id);
end $$;

-- Lets the next job of each key run where none holds it. Runs after the commit that freed the key or added the job,
-- never inside it: two transactions that do not see each other would both leave it to the other.
create function ukemi.promote_keys(in_queues text[], of_keys text[]) returns integer
  language plpgsql
  set enable_seqscan = off
  set jit = off
  as $$
declare
  promoted integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('ukemi.promote_keys', 0));
  update ukemi.jobs j
  set state = 'ready', key_held = true
  from (select distinct k.queue, k.key from unnest(in_queues, of_keys) as k (queue, key)) as k
  cross join lateral (
    select w.id
    from ukemi.jobs w
    where w.queue = k.queue and w.key = k.key and w.state = 'waiting'
    order by w.run_at, w.id
    limit 1
  ) as head
  where j.id = head.id
    and j.state = 'waiting'
    and not exists (select from ukemi.jobs h where h.queue = k.queue and h.key = k.key and h.key_held);
  get diagnostics promoted = row_count;
  return promoted;
end $$;

-- Our own ids -----------------------------------------------------------------------------------------------------

-- For a trigger on an application's table: when the row goes, events no longer point at it.
--   create trigger unlink after delete on billings for each row execute function ukemi.unlink('billing_id', 'id');
create function ukemi.unlink() returns trigger
  language plpgsql
  as $$
declare
  gone text := to_jsonb(old) ->> tg_argv[1];
begin
  case tg_argv[0]
    when 'billing_id' then update ukemi.event_outcomes set billing_id = null where billing_id = gone;
    when 'office_id' then update ukemi.event_outcomes set office_id = null where office_id = gone;
    else raise exception 'ukemi.unlink takes billing_id or office_id, not %', tg_argv[0];
  end case;
  return null;
end $$;
