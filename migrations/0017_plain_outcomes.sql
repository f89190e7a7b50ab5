-- An event whose jobs are all done is a success: nothing more is written of it until its jobs go. Claims that are quicker.
-- compatible-with: 1

-- Outcomes --------------------------------------------------------------------------------------------------------

-- What the jobs of an event say by themselves: one row where all of them are done, else none. Asked only where nothing was
-- written; without an event it looks at nothing.
create function ukemi.plain_success(of_event uuid) returns table (status text, processed_at timestamptz)
  language sql stable
  rows 1
  begin atomic
    select 'success', max(j.finished_at)
    from ukemi.jobs j
    where j.event = of_event
    having bool_and(j.state in ('done', 'cancelled')) and bool_or(j.state = 'done');
  end;

-- What became of an event: what was written of it, or else what its jobs say. No row: it is pending.
create function ukemi.outcome_of(of_event uuid)
  returns table (status text, error_message text, processed_at timestamptz, billing_id text, office_id text)
  language sql stable
  rows 1
  begin atomic
    select o.status, o.error_message, o.processed_at, o.billing_id, o.office_id
    from ukemi.event_outcomes o
    where o.event = of_event
    union all
    select p.status, null, p.processed_at, null, null
    from ukemi.plain_success(of_event) p
    where not exists (select from ukemi.event_outcomes o where o.event = of_event);
  end;

-- Changes are found by their time, those that are written nowhere else, too. A large store can have it made before, without
-- holding up anybody: docs/guides/operating.md, "Deploying".
create index if not exists jobs_done_by_time on ukemi.jobs (finished_at) where state = 'done';

-- Events stay when their jobs go, and with them what became of them, whoever removes the jobs: what all of them said together
-- before, those that go and those that stay.
create function ukemi.keep_outcomes() returns trigger
  language plpgsql
  -- fresh tables have no statistics
  set enable_seqscan = off
  as $$
begin
  insert into ukemi.event_outcomes (event, status, processed_at)
  select g.event, 'success', greatest(g.ended_at, s.ended_at)
  from (
    select event, max(finished_at) as ended_at, bool_or(state = 'done') as done
    from gone
    where event is not null
    group by event
    having bool_and(state in ('done', 'cancelled'))
  ) as g
  cross join lateral (
    select max(j.finished_at) as ended_at, bool_or(j.state = 'done') as done,
      bool_or(j.state not in ('done', 'cancelled')) as unsettled
    from ukemi.jobs j
    where j.event = g.event
  ) as s
  where (g.done or s.done) and s.unsettled is not true
  on conflict (event) do nothing;
  return null;
end $$;

create trigger jobs_keep_outcomes after delete on ukemi.jobs
  referencing old table as gone
  for each statement
  execute function ukemi.keep_outcomes();
-- nobody would be asked what they said
create trigger jobs_never_truncated before truncate on ukemi.jobs
  for each statement execute function ukemi.refuse_change();
alter table ukemi.jobs enable always trigger jobs_keep_outcomes, enable always trigger jobs_never_truncated;

-- Ids of ours are found by their indexes, an event by its own, and jobs are asked only where nothing is written. No index
-- knows what is made of several rows: `status` as before, and now `processed_at` too.
create or replace view ukemi.webhook_events as
  select
    e.id,
    e.event_id,
    e.type as event_type,
    e.source,
    o.billing_id,
    o.office_id,
    case when b.key_id is null then ukemi.json_or_null(b.body) end as payload,
    coalesce(o.processed_at, p.processed_at) as processed_at,
    coalesce(o.status, p.status, 'pending') as status,
    o.error_message,
    e.received_at as created_at
  from ukemi.events e
  left join ukemi.event_outcomes o on o.event = e.id
  left join lateral ukemi.plain_success(case when o.event is null then e.id end) as p on true
  left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at;

-- Counting --------------------------------------------------------------------------------------------------------

-- While both versions run, the one before looks for changes and counts, too, and sees no plain success. What it writes is
-- noted, to be counted anew, and what it has looked for is looked for again.

-- As `sure_until`, of those who know plain successes. Only they set it.
alter table ukemi.counting add column all_until timestamptz;
update ukemi.counting set all_until = sure_until;

-- Hours that were counted by who does not know plain successes.
create table ukemi.miscounted_hours (
  hour timestamptz primary key
);

create function ukemi.note_miscount() returns trigger
  language plpgsql
  as $$
begin
  insert into ukemi.miscounted_hours (hour) values (new.hour) on conflict do nothing;
  return null;
end $$;

create trigger event_hours_noted after insert or update on ukemi.event_hours
  for each row
  when (coalesce(current_setting('ukemi.counts_plain', true), '') <> 'on')
  execute function ukemi.note_miscount();

-- Settling --------------------------------------------------------------------------------------------------------

-- `settle_many` and `settle_together` stay as they are for processes of the version before: what one of them claimed before
-- this migration may be of an event that has an outcome, which it does not know of.

-- Completes many jobs whose handlers wrote nothing, each of which alone says what its event comes to: no outcome is written.
-- Returns those whose lease was lost.
create function ukemi.settle_plainly(
  of_jobs bigint[], of_tokens uuid[], took_ms double precision[], traces text[], by_worker uuid
) returns setof bigint
  language plpgsql
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
  set jit = off
  as $$
declare
  at timestamptz := ukemi.now();
  settled bigint[];
begin
  with fenced as (
    update ukemi.jobs j
    set state = 'done', attempt = attempt + 1, finished_at = at,
      lease_until = null, lease_token = null, worker = null, key_held = false,
      error_class = null, error_message = null, not_yet_since = null, returns = 0
    from unnest(of_jobs, of_tokens, took_ms, traces) as d (id, token, took_ms, trace)
    where j.id = d.id and j.lease_token = d.token
    returning j.id, j.attempt, j.recoveries, j.started_at, d.took_ms, d.trace
  ),
  tries as (
    insert into ukemi.attempts (job, number, outcome, started_at, duration_ms, worker, trace_id)
    select id, attempt, 'done', started_at, fenced.took_ms, by_worker, trace
    from fenced
    where attempt > 1 or recoveries > 0
  )
  select array_agg(id) into settled from fenced;
  if cardinality(settled) < cardinality(of_jobs) or settled is null then
    return query select d.id from unnest(of_jobs) as d (id) where d.id <> all(coalesce(settled, '{}'));
  end if;
end $$;

-- The same for handlers that share a transaction: links, audit and completions. Raises where one of them has lost its lease,
-- so that the COMMIT behind it rolls all of them back.
-- `links` and `audits` name their job; `billings` and `offices` are as long as `of_jobs`, or null where there are none.
create function ukemi.settle_shared(
  of_jobs bigint[], of_tokens uuid[], billings text[], offices text[], links jsonb, audits jsonb,
  took_ms double precision[], traces text[], by_worker uuid
) returns boolean
  language plpgsql
  -- that of the handlers is short: a job that an operator looks at must not undo all the others
  set lock_timeout = '2s'
  as $$
begin
  if exists (select from ukemi.settle_plainly(of_jobs, of_tokens, took_ms, traces, by_worker)) then
    raise exception 'a lease was lost' using errcode = 'UK001';
  end if;

  -- the commit must outlive a crash of the server, whatever the session's settings say
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  if billings is not null then
    insert into ukemi.event_outcomes as o (event, status, processed_at, billing_id, office_id)
    select j.event, 'success', j.finished_at, d.billing, d.office
    from unnest(of_jobs, billings, offices) as d (job, billing, office)
    join ukemi.jobs j on j.id = d.job
    where j.event is not null and (d.billing is not null or d.office is not null)
    on conflict (event) do update
    set status = excluded.status, processed_at = excluded.processed_at, error_message = null,
      billing_id = coalesce(excluded.billing_id, o.billing_id), office_id = coalesce(excluded.office_id, o.office_id);
  end if;
  if links is not null then
    insert into ukemi.event_refs (event, kind, ref)
    select j.event, r.kind, r.ref
    from jsonb_to_recordset(links) as r (job bigint, kind text, ref text)
    join ukemi.jobs j on j.id = r.job
    where j.event is not null
    on conflict do nothing;
  end if;
  if audits is not null then
    insert into ukemi.audit_log (actor, role, action, target, tenant, details, dedupe_key)
    select j.subscription, 'handler', a.action, a.target, j.tenant, a.details, a.dedupe_key
    from jsonb_to_recordset(audits) as a (job bigint, action text, target text, details jsonb, dedupe_key text)
    join ukemi.jobs j on j.id = a.job
    on conflict (dedupe_key) do nothing;
  end if;
  return true;
end $$;

-- Jobs may be claimed ahead of those that run: how many run at once tells which of them may have begun. In the order of
-- `queues`; null for workers that claim none ahead.
alter table ukemi.workers add column concurrency integer[];

-- Claiming --------------------------------------------------------------------------------------------------------

-- Leases jobs that were found, and locked, by one of the two claims.
create or replace function ukemi.lease_jobs(taken bigint[], alone boolean, by_worker uuid, token uuid, lease_ms integer)
  returns table (
    id bigint, queue text, kind text, handler text, tenant text, key text, attempt integer, max_attempts integer,
    recoveries integer, waited_ms double precision, siblings integer, payload text,
    event uuid, source text, account text, livemode boolean, event_id text, type text, received_ms double precision,
    traceparent text, body bytea, headers text, key_id text
  )
  language plpgsql
  rows 20
  as $$
#variable_conflict use_column
declare
  at timestamptz := ukemi.now(); -- asked once: it costs as much as a row
begin
  -- A claim need not outlive a crash of the server: without it the job is ready, and whoever holds it fails at the fence.
  if current_setting('synchronous_commit') <> 'off' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  -- Everything a handler needs to know, read here: each statement of this function has a snapshot of its own, newer than
  -- that of the statement which calls it, which might not see the events of the jobs claimed.
  return query
    with claimed as (
      update ukemi.jobs j
      set state = 'running',
        lease_until = at + make_interval(secs => lease_ms / 1000.0),
        lease_token = token,
        worker = by_worker,
        -- One that runs alone has to wait until its neighbours are finished. The others begin in the order in which they
        -- were taken, which is kept.
        started_at = case when alone then null else at + t.place * interval '1 microsecond' end
      from unnest(taken) with ordinality as t (job, place)
      where j.id = t.job
      returning j.*, t.place
    )
    select
      j.id, j.queue, j.kind, j.subscription, j.tenant, j.key, j.attempt, j.max_attempts, j.recoveries,
      extract(epoch from at - j.run_at)::double precision * 1000,
      -- whoever has a say in what the event comes to: its jobs, and what was written of it before
      (select count(*)::integer from ukemi.jobs s where s.event = j.event)
        + (select count(*)::integer from ukemi.event_outcomes o where o.event = j.event),
      p.payload,
      e.id, e.source, e.account, e.livemode, e.event_id, e.type,
      extract(epoch from e.received_at)::double precision * 1000,
      e.traceparent, b.body, b.headers, b.key_id
    from claimed j
    left join ukemi.events e on e.id = j.event
    left join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at
    left join ukemi.job_payloads p on p.job = j.id
    -- as they were taken: the last one says where the next claim begins
    order by j.place;
end $$;
