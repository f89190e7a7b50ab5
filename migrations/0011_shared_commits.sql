-- Handlers that share a commit, and a clock that costs less.
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
