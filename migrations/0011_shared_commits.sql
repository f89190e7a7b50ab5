-- Handlers that share a commit; claims that wait for no disk; a clock that costs less.
-- compatible-with: 1

-- The same as before. A SQL function is read and planned anew by each statement that calls it, this one once per connection.
create or replace function ukemi.now() returns timestamptz
  language plpgsql stable
  as $$
declare
  moved interval;
begin
  select shift into moved from ukemi.clock;
  return clock_timestamp() + moved;
end $$;

-- Completes the jobs of handlers that share a transaction, each the only one of its event: outcomes, links, audit and
-- completions. Raises where one of them has lost its lease, so that the COMMIT behind it rolls all of them back.
-- `links` and `audits` name their job; `billings` and `offices` are as long as `of_jobs`, or null where there are none.
create function ukemi.settle_together(
  of_jobs bigint[], of_tokens uuid[], billings text[], offices text[], links jsonb, audits jsonb,
  took_ms double precision[], traces text[], by_worker uuid
) returns boolean
  language plpgsql
  -- that of the handlers is short: a job that an operator looks at must not undo all the others
  set lock_timeout = '2s'
  as $$
begin
  if exists (select from ukemi.settle_many(of_jobs, of_tokens, took_ms, traces, by_worker)) then
    raise exception 'a lease was lost' using errcode = 'UK001';
  end if;

  -- the commit must outlive a crash of the server, whatever the session's settings say
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  if billings is not null then
    update ukemi.event_outcomes o
    set billing_id = coalesce(d.billing, o.billing_id), office_id = coalesce(d.office, o.office_id)
    from unnest(of_jobs, billings, offices) as d (job, billing, office)
    join ukemi.jobs j on j.id = d.job
    where o.event = j.event and (d.billing is not null or d.office is not null);
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

-- Leases jobs that were found, and locked, by one of the two claims below.
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
