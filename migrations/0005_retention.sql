-- Retention: what goes when, without holding anybody up.
-- compatible-with: 1

-- Which events have dead letters: their bodies stay.
create index jobs_dead_by_event on ukemi.jobs (event) where state = 'dead';

-- One row: who prunes at this moment, how far the walks have come, and what has been removed since the last audit.
create table ukemi.retention (
  one boolean primary key default true check (one),
  -- when pruning is due again; null: it has never been done
  due_at timestamptz,
  -- the run that prunes now; after held_until another may take over
  holder uuid,
  held_until timestamptz,
  started_at timestamptz,
  actor text,
  role text,
  reason text,
  -- the limits it goes by
  body_days integer,
  attempt_days integer,
  job_days integer,
  -- jobs and attempts up to these ids have been looked at
  jobs_after bigint not null default 0,
  attempts_after bigint not null default 0,
  -- when a walk last began at the first id: what was not yet old enough then is met again by the next one
  walked_at timestamptz,
  -- removed in commits of their own, and not yet in the audit
  jobs bigint not null default 0,
  attempts bigint not null default 0,
  bodies bigint not null default 0,
  workers bigint not null default 0,
  constraint retention_holder check ((holder is null) = (held_until is null))
);
insert into ukemi.retention default values;

-- The limits that processes have, and when one that has them was last heard of: the longest among them count, 0 is for ever.
create table ukemi.retention_limits (
  body_days integer not null,
  attempt_days integer not null,
  job_days integer not null,
  seen_at timestamptz not null,
  primary key (body_days, attempt_days, job_days)
);
