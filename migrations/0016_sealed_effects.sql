-- What effects hold, sealed like bodies; and letting go of it when it is old.
-- compatible-with: 1

-- Digests ----------------------------------------------------------------------------------------------------------

-- Of which data key the key is derived that makes digests of targets. Chosen once: a re-wrap changes how a data key is sealed,
-- never the key itself, so what was found by a digest is found by it for ever.
create table ukemi.digest_key (
  one boolean primary key default true check (one),
  data_key text not null
);
create trigger digest_key_kept before update or delete on ukemi.digest_key
  for each row execute function ukemi.refuse_change();
create trigger digest_key_never_truncated before truncate on ukemi.digest_key
  for each statement execute function ukemi.refuse_change();
alter table ukemi.digest_key
  enable always trigger digest_key_kept, enable always trigger digest_key_never_truncated;

-- The ledger -------------------------------------------------------------------------------------------------------

alter table ukemi.effects
  -- where it is set, `target` is a digest, and the target itself is sealed here
  add column target_sealed text,
  -- when retention, or an erasure, has removed what it held; that it was, and what became of it, stays
  add column pruned_at timestamptz,
  add column erased_at timestamptz;

alter table ukemi.mail_suppressions
  add column address_sealed text;

-- Retention --------------------------------------------------------------------------------------------------------

-- What has ended and still holds something, in the order in which it becomes old: pruning reads nothing else.
create index effects_to_prune on ukemi.effects (ended_at, id)
  where ended_at is not null and pruned_at is null and erased_at is null;
create index effect_attempts_old on ukemi.effect_attempts (ended_at, effect, number) where ended_at is not null;

-- removed since the last audit, as the other counts of this row; and the limit it goes by
alter table ukemi.retention
  add column effect_days integer,
  add column effects bigint not null default 0,
  add column effect_attempts bigint not null default 0,
  add column destination_hours bigint not null default 0;

-- As retention_limits, whose key older versions know by its three columns.
create table ukemi.effect_limits (
  effect_days integer primary key,
  seen_at timestamptz not null
);
