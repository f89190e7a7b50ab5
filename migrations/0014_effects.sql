-- Effects: the ledger of every act on the outside world, what is known of those it goes to, and whom not to write to.
-- compatible-with: 1

-- The ledger ------------------------------------------------------------------------------------------------------

-- One row for each act that was intended, written in the transaction that decided it, kept for ever: a second intent with
-- the same key must be known for what it is, however late it comes.
create table ukemi.effects (
  id uuid primary key,
  kind text not null,
  tenant text,
  dedupe_key text not null,
  state text not null,
  -- to whom: an address, a URL, a meter. Together with the amount it is what a key stands for
  target text not null,
  amount bigint,
  currency text,
  -- what is to be done, as JSON. Text, not jsonb: it refuses or changes legal JSON
  intent text not null,
  -- whose limits hold, and who is left alone when it does not answer
  destination text not null,
  on_uncertain text not null,
  max_attempts integer not null,
  -- what decided it
  event uuid,
  cause bigint,
  handler text,
  -- the effect that must be done first
  after uuid,
  -- the one that was there before, of an intent that came again
  suppressed_by uuid,
  -- the job that carries it out; null while it waits for another effect, and where somebody waits for the answer himself
  job bigint,
  -- calls that were begun, and how many of them ended without anybody knowing how
  attempt integer not null default 0,
  uncertainties integer not null default 0,
  -- an operator has said that it may be repeated, once
  released boolean not null default false,
  -- how long calls and the waits between them have taken so far
  spent_ms double precision not null default 0,
  planned_at timestamptz not null,
  begun_at timestamptz,
  -- until when a call without a job may take
  lease_until timestamptz,
  ended_at timestamptz,
  -- what the peer gave for it, as JSON
  receipt text,
  -- why it is where it is
  reason text,
  -- what was heard of it afterwards: delivered, bounced, complained
  feedback text,
  feedback_at timestamptz,
  constraint effects_state check (
    state in ('planned', 'sending', 'done', 'failed', 'cancelled', 'suppressed', 'uncertain', 'held')
  ),
  constraint effects_policy check (on_uncertain in ('retry', 'hold')),
  constraint effects_ended check ((state in ('done', 'failed', 'cancelled', 'suppressed')) = (ended_at is not null)),
  constraint effects_money check ((amount is null) = (currency is null)),
  constraint effects_bounded check (
    octet_length(dedupe_key) between 1 and 255
    and octet_length(kind) between 1 and 64
    and octet_length(target) between 1 and 2048
    and octet_length(destination) between 1 and 255
    and octet_length(tenant) between 1 and 255
  )
);

-- The promise: one act for a key, for ever. Intents that came again point at it.
create unique index effects_identity on ukemi.effects (coalesce(tenant, ''), kind, dedupe_key)
  where suppressed_by is null;
create unique index effects_repeated on ukemi.effects (suppressed_by, cause) where suppressed_by is not null;
create index effects_open on ukemi.effects (state, id) where state not in ('done', 'suppressed', 'cancelled');
create index effects_sending on ukemi.effects (destination) where state = 'sending';
create index effects_followers on ukemi.effects (after) where after is not null;
create index effects_by_target on ukemi.effects (target, id);
create index effects_by_event on ukemi.effects (event, id) where event is not null;
create index effects_by_cause on ukemi.effects (cause, id) where cause is not null;
create index effects_by_job on ukemi.effects (job) where job is not null;
create index effects_by_tenant on ukemi.effects (tenant, id) where tenant is not null;

create trigger effects_never_truncated before truncate on ukemi.effects
  for each statement execute function ukemi.refuse_change();
create trigger effects_never_deleted before delete on ukemi.effects
  for each row execute function ukemi.refuse_change();
alter table ukemi.effects
  enable always trigger effects_never_truncated, enable always trigger effects_never_deleted;

-- One row for each call, committed before its first byte.
create table ukemi.effect_attempts (
  effect uuid not null,
  number integer not null,
  worker uuid,
  started_at timestamptz not null,
  ended_at timestamptz,
  -- null while it is under way: whoever finds it so later knows nothing of how it ended
  result text,
  -- true where an earlier call may have been the one that counted
  repeats boolean not null default false,
  error_class text,
  error_message text,
  -- what the peer said, as JSON
  answer text,
  duration_ms double precision,
  primary key (effect, number),
  constraint effect_attempts_result check (result in ('done', 'again', 'failed', 'uncertain', 'blocked'))
);

-- Destinations ----------------------------------------------------------------------------------------------------

-- Whom effects go to: what all processes together must keep to. Only those that somebody has spoken of.
create table ukemi.destinations (
  name text primary key,
  -- when the next call may begin
  next_at timestamptz,
  paused_until timestamptz,
  pause_reason text,
  -- calls in a row that failed; the circuit is open from `opened_at` on, and tried again at `probe_at`
  failures integer not null default 0,
  opened_at timestamptz,
  open_reason text,
  probe_at timestamptz,
  probes integer not null default 0
);

-- How many calls were begun in each hour: the limit of a day is that of any 24 hours.
create table ukemi.destination_hours (
  destination text not null,
  hour timestamptz not null,
  calls integer not null,
  primary key (destination, hour)
);

-- Addresses that mail must not go to any more, each for one tenant ('' for mail of nobody in particular).
create table ukemi.mail_suppressions (
  tenant text not null default '',
  address text not null,
  reason text not null,
  effect uuid,
  at timestamptz not null default ukemi.now(),
  primary key (address, tenant),
  constraint mail_suppressions_reason check (reason in ('bounce', 'complaint', 'refused', 'operator'))
);
