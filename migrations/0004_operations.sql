-- Operations: what an operator does to many jobs, as an object that can be watched and stopped.
-- compatible-with: 1

create table ukemi.operations (
  id uuid primary key,
  name text not null,
  kind text not null,
  reason text not null,
  actor text not null,
  -- of a caller bound to tenants; null: of nobody in particular
  tenants text[],
  -- what was asked for, for people: the items are what is done
  selection jsonb not null,
  state text not null default 'running',
  -- null: as fast as it goes
  rate_per_second double precision,
  canary boolean not null default false,
  -- which share of those that ended may have died again; null for drops, which cannot fail
  failure_limit double precision,
  -- the canary's first item, its ten next, and all others
  stage text not null default 'all',
  -- how many more items the stage may replay; null in the last
  stage_left integer,
  stop_reason text,

  -- The items in each state: kept here so that nothing has to count a hundred thousand of them.
  total integer not null,
  waiting integer not null,
  replayed integer not null default 0,
  done integer not null default 0,
  dead integer not null default 0,
  dropped integer not null default 0,
  skipped integer not null default 0,
  gone integer not null default 0,
  -- what had ended, what of it was judged, and what had failed when it was let run: failures and speed count from there
  ended_before integer not null default 0,
  judged_before integer not null default 0,
  failed_before integer not null default 0,
  -- items are taken in their order: those that wait lie here or behind
  next_position integer not null default 1,

  -- also the moment at which its jobs were chosen: one that died after it is not meant
  created_at timestamptz not null,
  started_at timestamptz,
  -- when it was created, or resumed last
  running_since timestamptz not null,
  -- when an item changed last
  progressed_at timestamptz not null,
  -- when it stopped by itself, or was aborted
  stopped_at timestamptz,
  finished_at timestamptz,
  -- when a process looks at it again
  next_at timestamptz not null,
  -- when the rate allows the next item
  paced_at timestamptz not null,
  -- why its last step failed; null where it did not
  fault text,

  constraint operations_kind check (kind in ('replay', 'drop')),
  constraint operations_state check (state in ('running', 'stopped', 'aborted', 'done')),
  constraint operations_counts check (
    least(waiting, replayed, done, dead, dropped, skipped, gone) >= 0
    and waiting + replayed + done + dead + dropped + skipped + gone = total
  ),
  constraint operations_finished check (
    (state = 'done') = (finished_at is not null)
    and (state <> 'done' or waiting + replayed = 0)
  ),
  constraint operations_stopped check (
    (state in ('stopped', 'aborted')) = (stopped_at is not null)
    and (stopped_at is null) = (stop_reason is null)
  ),
  constraint operations_rate check (rate_per_second > 0),
  constraint operations_limit check (
    failure_limit between 0 and 1
    and (failure_limit is null) = (kind = 'drop')
  ),
  constraint operations_stage check (
    stage in ('one', 'ten', 'all')
    and (canary or stage = 'all')
    and (stage = 'all') = (stage_left is null)
    and stage_left >= 0
  )
) with (fillfactor = 50);
-- One that was stopped is still looked at until what it had put to work has ended.
create index operations_due on ukemi.operations (next_at) where state = 'running' or replayed > 0;

create table ukemi.operation_items (
  operation uuid not null,
  -- in the order in which the jobs were made, so that those of one key keep it
  position integer not null,
  job bigint not null,
  state text not null default 'waiting',
  -- of one that died again
  error_class text,
  -- why it died again, or was skipped
  message text,
  changed_at timestamptz not null,
  primary key (operation, position),
  constraint operation_items_state check (
    state in ('waiting', 'replayed', 'done', 'dead', 'dropped', 'skipped', 'gone')
  )
);
-- Those at work, however many have ended before them.
create index operation_items_replayed on ukemi.operation_items (operation, position) where state = 'replayed';
-- Whether a job waits in an operation already, and what was written about it in others: an erasure blanks it.
create index operation_items_by_job on ukemi.operation_items (job);
