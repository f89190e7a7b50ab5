-- Access: who may use the API (tokens), and requests that may come twice (idempotency_keys).
-- compatible-with: 1

-- Tokens ----------------------------------------------------------------------------------------------------------

create table ukemi.tokens (
  id uuid primary key,
  name text not null,
  -- SHA-256 of the secret, which is long and random: a slower hash would add nothing
  hash bytea not null unique,
  -- its first letters, by which a person tells one from another
  hint text not null,
  scope text not null,
  -- null: all of them, and what belongs to none
  tenants text[],
  created_at timestamptz not null default ukemi.now(),
  created_by text not null,
  -- for how long it was made; a rotation shortens only expires_at
  lifetime interval,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  -- the token whose place it takes; both are good until the old one expires
  replaces uuid,
  constraint tokens_scope check (scope in ('read', 'operate', 'admin')),
  constraint tokens_tenants check (cardinality(tenants) > 0),
  constraint tokens_bounded check (octet_length(name) between 1 and 255)
);

-- Requests that may come twice ------------------------------------------------------------------------------------

-- Written in the transaction of the change itself: the key is taken if and only if the change was made.
create table ukemi.idempotency_keys (
  -- a token by its id: two may have the same name
  caller text not null,
  key text not null,
  request_sha256 bytea not null,
  status integer not null,
  answer text not null,
  created_at timestamptz not null default ukemi.now(),
  primary key (caller, key)
);
create index idempotency_keys_by_time on ukemi.idempotency_keys (created_at);

-- Lists -----------------------------------------------------------------------------------------------------------

create index jobs_by_tenant on ukemi.jobs (tenant, id) where tenant is not null;
create index audit_log_by_tenant on ukemi.audit_log (tenant, id) where tenant is not null;
-- what people did, without the many lines that handlers write
create index audit_log_by_people on ukemi.audit_log (id) where role <> 'handler';
