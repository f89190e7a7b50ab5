-- The hot paths: settling is done by functions, planned once for each connection, whoever's it is.
-- compatible-with: 1

-- Completes a job inside the handler's transaction: outcome, links, audit and completion. Raises where the fence fails, so
-- that the COMMIT behind it rolls back, whether or not anyone looked.
-- `within` is the transaction's own mark; null where no other statement ran in it before. `siblings`: how many jobs the
-- event has, this one included.
create function ukemi.settle_done(
  of_job bigint, of_token uuid, within text, siblings integer,
  billing text, office text, links jsonb, audits jsonb,
  took_ms double precision, by_worker uuid, trace text
) returns boolean
  language plpgsql
  as $$
declare
  at timestamptz := ukemi.now();
  j record;
  outcome text := 'success';
begin
  -- a job with a token is running: saying so here would invite the planner to another index
  update ukemi.jobs
  set state = 'done', attempt = attempt + 1, finished_at = at,
    lease_until = null, lease_token = null, worker = null, key_held = false,
    error_class = null, error_message = null, not_yet_since = null, returns = 0
  where id = of_job and lease_token = of_token
  returning event, subscription, tenant, attempt, recoveries, started_at into j;
  -- a transaction that the handler ended itself is not the one that we opened
  if not found or within <> coalesce(current_setting('ukemi.job', true), '') then
    raise exception 'the lease was lost' using errcode = 'UK001';
  end if;

  -- the commit must outlive a crash of the server, whatever the session's settings say
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  if j.event is not null then
    if siblings > 1 then
      -- two handlers of one event that finish at once must see each other, else neither calls it a success
      perform pg_advisory_xact_lock(hashtextextended('ukemi.outcome' || j.event::text, 0));
      outcome := (
        select case
          when bool_or(s.state = 'dead') then 'failed'
          when bool_or(s.state in ('scheduled', 'ready', 'waiting', 'running')) then 'pending'
          else 'success'
        end
        from ukemi.jobs s
        where s.event = j.event
      );
    end if;
    if outcome <> 'pending' or billing is not null or office is not null then
      insert into ukemi.event_outcomes (event, status, processed_at, billing_id, office_id)
      values (j.event, outcome, case when outcome <> 'pending' then at end, billing, office)
      on conflict (event) do update
      -- pending is only what our snapshot shows: a sibling that died since has said failed
      set status = case when excluded.status = 'pending' then event_outcomes.status else excluded.status end,
        processed_at = coalesce(excluded.processed_at, event_outcomes.processed_at),
        error_message = case when excluded.status <> 'success' then event_outcomes.error_message end,
        billing_id = coalesce(excluded.billing_id, event_outcomes.billing_id),
        office_id = coalesce(excluded.office_id, event_outcomes.office_id);
    end if;
    if links is not null then
      insert into ukemi.event_refs (event, kind, ref)
      select j.event, r.kind, r.ref
      from jsonb_to_recordset(links) as r (kind text, ref text)
      on conflict do nothing;
    end if;
  end if;

  if audits is not null then
    insert into ukemi.audit_log (actor, role, action, target, tenant, details, dedupe_key)
    select j.subscription, 'handler', a.action, a.target, j.tenant, a.details, a.dedupe_key
    from jsonb_to_recordset(audits) as a (action text, target text, details jsonb, dedupe_key text)
    on conflict (dedupe_key) do nothing;
  end if;

  if j.attempt > 1 or j.recoveries > 0 then
    insert into ukemi.attempts (job, number, outcome, started_at, duration_ms, worker, trace_id)
    values (of_job, j.attempt, 'done', j.started_at, took_ms, by_worker, trace);
  end if;
  return true;
end $$;

-- Completes many jobs whose handlers wrote nothing, each the only one of its event. Returns those whose lease was lost.
create function ukemi.settle_many(
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
    returning j.id, j.event, j.attempt, j.recoveries, j.started_at, d.took_ms, d.trace
  ),
  outcomes as (
    insert into ukemi.event_outcomes (event, status, processed_at)
    select event, 'success', at
    from fenced
    where event is not null
    on conflict (event) do update
    set status = excluded.status, processed_at = excluded.processed_at, error_message = null
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

-- Leases jobs that were found, and locked, by one of the two claims below.
create function ukemi.lease_jobs(taken bigint[], alone boolean, by_worker uuid, token uuid, lease_ms integer)
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
  -- Everything a handler needs to know, read here: each statement of this function has a snapshot of its own, newer than
  -- that of the statement which calls it, which might not see the events of the jobs claimed.
  return query
    with claimed as (
      update ukemi.jobs j
      set state = 'running',
        lease_until = at + make_interval(secs => lease_ms / 1000.0),
        lease_token = token,
        worker = by_worker,
        -- one that runs alone has to wait until its neighbours are finished
        started_at = case when alone then null else at end
      where j.id = any(taken)
      returning j.*
    )
    select
      j.id, j.queue, j.kind, j.subscription, j.tenant, j.key, j.attempt, j.max_attempts, j.recoveries,
      extract(epoch from at - j.run_at)::double precision * 1000,
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

-- The same as before, but for what lies in the function above.
create or replace function ukemi.claim_jobs(
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

  return query select * from ukemi.lease_jobs(taken, alone, by_worker, token, lease_ms);
end $$;

-- Goes on behind a job that was claimed last: the next ones of its handler, priority and tenant. A claim that begins at the
-- beginning walks over every job that was ever claimed since the last vacuum. Where fewer than `most` are found it does.
create function ukemi.claim_behind(
  last_job bigint,
  in_queue text,
  handlers text[],
  most integer,
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
  last record;
  taken bigint[];
begin
  if exists (select from ukemi.queues q where q.name = in_queue and q.paused) then
    return;
  end if;
  select j.subscription, j.priority, coalesce(j.tenant, '') as tenant, j.run_at, j.id into last
  from ukemi.jobs j
  where j.id = last_job;
  taken := array(
    select j.id
    from ukemi.jobs j
    where j.queue = in_queue and j.subscription = last.subscription and j.state = 'ready' and j.recoveries = 0
      and j.priority = last.priority and coalesce(j.tenant, '') = last.tenant
      and (j.run_at, j.id) > (last.run_at, last.id)
    order by j.run_at, j.id
    limit most
    for update skip locked
  );
  if cardinality(taken) < most then
    return query select * from ukemi.claim_jobs(in_queue, handlers, most, false, after_tenant, by_worker, token, lease_ms);
  else
    return query select * from ukemi.lease_jobs(taken, false, by_worker, token, lease_ms);
  end if;
end $$;

-- Running jobs are few, and found by their worker.
drop index ukemi.jobs_running;

-- Most events are a success: a list of those walks the events themselves.
drop index ukemi.event_outcomes_by_status;
create index event_outcomes_by_status on ukemi.event_outcomes (status, event) where status <> 'success';

-- A check is read from its text, planned and made ready anew by each statement: nine of them were half of what it costs to
-- settle one job. The statements that change jobs are few, and the tests run them with the checks in place.
alter table ukemi.jobs
  drop constraint jobs_counts,
  drop constraint jobs_death,
  drop constraint jobs_finished,
  drop constraint jobs_handler,
  drop constraint jobs_key,
  drop constraint jobs_lease,
  drop constraint jobs_state,
  drop constraint jobs_task,
  drop constraint jobs_waiting;
alter table ukemi.event_outcomes drop constraint event_outcomes_status;
