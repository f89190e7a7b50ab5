column anomalies.id bigint not null
column anomalies.ended_at timestamp with time zone
column anomalies.hour timestamp with time zone not null
column anomalies.source text not null
column anomalies.type text not null
column anomalies.kind text not null
column anomalies.received integer not null
column anomalies.expected_low integer not null
column anomalies.expected_high integer not null
column anomalies.noticed_at timestamp with time zone not null default ukemi.now()
column attempts.id bigint not null
column attempts.duration_ms double precision
column attempts.worker uuid
column attempts.trace_id text
column attempts.job bigint not null
column attempts.number integer not null
column attempts.outcome text not null
column attempts.error_class text
column attempts.error_message text
column attempts.error_stack text
column attempts.started_at timestamp with time zone
column attempts.ended_at timestamp with time zone not null default ukemi.now()
column audit_log.id bigint not null
column audit_log.at timestamp with time zone not null default ukemi.now()
column audit_log.actor text not null
column audit_log.role text not null
column audit_log.action text not null
column audit_log.target text
column audit_log.tenant text
column audit_log.details jsonb not null default '{}'::jsonb
column audit_log.dedupe_key text
column clock.one boolean not null default true
column clock.shift interval not null default '00:00:00'::interval
column counting.one boolean not null default true
column counting.found_until timestamp with time zone
column counting.found_xmax xid8
column counting.sure_until timestamp with time zone
column counting.counted_until timestamp with time zone
column counting.running_since timestamp with time zone
column counting.judged_until timestamp with time zone
column counting.all_until timestamp with time zone
column data_keys.id text not null
column data_keys.wrapped bytea not null
column data_keys.wrapped_by text not null
column data_keys.created_at timestamp with time zone not null default ukemi.now()
column destination_hours.destination text not null
column destination_hours.hour timestamp with time zone not null
column destination_hours.calls integer not null
column destinations.name text not null
column destinations.next_at timestamp with time zone
column destinations.paused_until timestamp with time zone
column destinations.pause_reason text
column destinations.failures integer not null default 0
column destinations.opened_at timestamp with time zone
column destinations.open_reason text
column destinations.probe_at timestamp with time zone
column destinations.probes integer not null default 0
column digest_key.one boolean not null default true
column digest_key.data_key text not null
column effect_attempts.effect uuid not null
column effect_attempts.answer text
column effect_attempts.duration_ms double precision
column effect_attempts.number integer not null
column effect_attempts.worker uuid
column effect_attempts.started_at timestamp with time zone not null
column effect_attempts.ended_at timestamp with time zone
column effect_attempts.result text
column effect_attempts.repeats boolean not null default false
column effect_attempts.error_class text
column effect_attempts.error_message text
column effect_limits.effect_days integer not null
column effect_limits.seen_at timestamp with time zone not null
column effects.id uuid not null
column effects.destination text not null
column effects.on_uncertain text not null
column effects.max_attempts integer not null
column effects.event uuid
column effects.cause bigint
column effects.handler text
column effects.after uuid
column effects.suppressed_by uuid
column effects.job bigint
column effects.attempt integer not null default 0
column effects.kind text not null
column effects.uncertainties integer not null default 0
column effects.released boolean not null default false
column effects.spent_ms double precision not null default 0
column effects.planned_at timestamp with time zone not null
column effects.begun_at timestamp with time zone
column effects.lease_until timestamp with time zone
column effects.ended_at timestamp with time zone
column effects.receipt text
column effects.reason text
column effects.feedback text
column effects.tenant text
column effects.feedback_at timestamp with time zone
column effects.target_sealed text
column effects.pruned_at timestamp with time zone
column effects.erased_at timestamp with time zone
column effects.dedupe_key text not null
column effects.state text not null
column effects.target text not null
column effects.amount bigint
column effects.currency text
column effects.intent text not null
column erasures.event uuid not null
column erasures.erased_at timestamp with time zone not null default ukemi.now()
column event_bodies.event uuid not null
column event_bodies.received_at timestamp with time zone not null
column event_bodies.body bytea not null
column event_bodies.headers text not null
column event_bodies.key_id text
column event_bodies_default.event uuid not null
column event_bodies_default.received_at timestamp with time zone not null
column event_bodies_default.body bytea not null
column event_bodies_default.headers text not null
column event_bodies_default.key_id text
column event_hours.source text not null
column event_hours.last_received_at timestamp with time zone not null
column event_hours.type text not null
column event_hours.hour timestamp with time zone not null
column event_hours.tenant text not null default ''::text
column event_hours.received integer not null
column event_hours.success integer not null
column event_hours.failed integer not null
column event_hours.skipped integer not null
column event_hours.unrouted integer not null
column event_outcomes.event uuid not null
column event_outcomes.status text not null
column event_outcomes.error_message text
column event_outcomes.processed_at timestamp with time zone
column event_outcomes.billing_id text
column event_outcomes.office_id text
column event_refs.event uuid not null
column event_refs.kind text not null
column event_refs.ref text not null
column events.id uuid not null
column events.origin text not null default 'webhook'::text
column events.secret_fingerprint text
column events.request_id text
column events.traceparent text
column events.body_sha256 bytea not null
column events.body_bytes integer not null
column events.ref_kinds text[]
column events.ref_ids text[]
column events.source text not null
column events.account text not null default ''::text
column events.livemode boolean not null default true
column events.event_id text not null
column events.type text not null
column events.tenant text
column events.received_at timestamp with time zone not null
column events.occurred_at timestamp with time zone
column idempotency_keys.caller text not null
column idempotency_keys.key text not null
column idempotency_keys.request_sha256 bytea not null
column idempotency_keys.status integer not null
column idempotency_keys.answer text not null
column idempotency_keys.created_at timestamp with time zone not null default ukemi.now()
column job_payloads.job bigint not null
column job_payloads.payload text not null
column jobs.id bigint not null
column jobs.attempt integer not null default 0
column jobs.max_attempts integer not null
column jobs.recoveries integer not null default 0
column jobs.policy text not null
column jobs.run_at timestamp with time zone not null
column jobs.created_at timestamp with time zone not null
column jobs.started_at timestamp with time zone
column jobs.finished_at timestamp with time zone
column jobs.lease_until timestamp with time zone
column jobs.lease_token uuid
column jobs.queue text not null
column jobs.worker uuid
column jobs.error_class text
column jobs.error_message text
column jobs.dedupe_key text
column jobs.ordered boolean not null default false
column jobs.key_held boolean not null default false
column jobs.not_yet_since timestamp with time zone
column jobs.death text
column jobs.revivals smallint not null default 0
column jobs.returns integer not null default 0
column jobs.kind text not null
column jobs.subscription text
column jobs.event uuid
column jobs.tenant text
column jobs.key text
column jobs.state text not null
column jobs.priority smallint not null default 0
column mail_suppressions.tenant text not null default ''::text
column mail_suppressions.address text not null
column mail_suppressions.reason text not null
column mail_suppressions.effect uuid
column mail_suppressions.at timestamp with time zone not null default ukemi.now()
column mail_suppressions.address_sealed text
column migrations.version integer not null
column migrations.name text not null
column migrations.checksum text not null
column migrations.compatible_with integer not null
column migrations.applied_at timestamp with time zone not null default clock_timestamp()
column miscounted_hours.hour timestamp with time zone not null
column operation_items.operation uuid not null
column operation_items.position integer not null
column operation_items.job bigint not null
column operation_items.state text not null default 'waiting'::text
column operation_items.error_class text
column operation_items.message text
column operation_items.changed_at timestamp with time zone not null
column operations.id uuid not null
column operations.canary boolean not null default false
column operations.failure_limit double precision
column operations.stage text not null default 'all'::text
column operations.stage_left integer
column operations.stop_reason text
column operations.total integer not null
column operations.waiting integer not null
column operations.replayed integer not null default 0
column operations.done integer not null default 0
column operations.dead integer not null default 0
column operations.name text not null
column operations.dropped integer not null default 0
column operations.skipped integer not null default 0
column operations.gone integer not null default 0
column operations.ended_before integer not null default 0
column operations.judged_before integer not null default 0
column operations.failed_before integer not null default 0
column operations.next_position integer not null default 1
column operations.created_at timestamp with time zone not null
column operations.started_at timestamp with time zone
column operations.running_since timestamp with time zone not null
column operations.kind text not null
column operations.progressed_at timestamp with time zone not null
column operations.stopped_at timestamp with time zone
column operations.finished_at timestamp with time zone
column operations.next_at timestamp with time zone not null
column operations.paced_at timestamp with time zone not null
column operations.fault text
column operations.reason text not null
column operations.actor text not null
column operations.tenants text[]
column operations.selection jsonb not null
column operations.state text not null default 'running'::text
column operations.rate_per_second double precision
column outcome_changes.event uuid not null
column queues.name text not null
column queues.paused boolean not null default false
column queues.reason text
column queues.changed_at timestamp with time zone not null default ukemi.now()
column rejections.id bigint not null
column rejections.body_sample bytea not null
column rejections.received_at timestamp with time zone not null default ukemi.now()
column rejections.source text not null
column rejections.reason text not null
column rejections.diagnosis text not null
column rejections.address text
column rejections.request_id text not null
column rejections.headers text not null
column rejections.body_bytes integer not null
column retention.one boolean not null default true
column retention.attempt_days integer
column retention.job_days integer
column retention.jobs_after bigint not null default 0
column retention.attempts_after bigint not null default 0
column retention.walked_at timestamp with time zone
column retention.jobs bigint not null default 0
column retention.attempts bigint not null default 0
column retention.bodies bigint not null default 0
column retention.workers bigint not null default 0
column retention.operations bigint not null default 0
column retention.due_at timestamp with time zone
column retention.effect_days integer
column retention.effects bigint not null default 0
column retention.effect_attempts bigint not null default 0
column retention.destination_hours bigint not null default 0
column retention.holder uuid
column retention.held_until timestamp with time zone
column retention.started_at timestamp with time zone
column retention.actor text
column retention.role text
column retention.reason text
column retention.body_days integer
column retention_limits.body_days integer not null
column retention_limits.attempt_days integer not null
column retention_limits.job_days integer not null
column retention_limits.seen_at timestamp with time zone not null
column stale_hours.hour timestamp with time zone not null
column subscriptions.name text not null
column subscriptions.registered_at timestamp with time zone not null default ukemi.now()
column subscriptions.key_by text
column subscriptions.ordered boolean not null default false
column subscriptions.source text not null
column subscriptions.pattern text not null
column subscriptions.type_like text not null default replace(replace(replace(replace(pattern, '\'::text, '\\'::text), '%'::text, '\%'::text), '_'::text, '\_'::text), '*'::text, '%'::text)
column subscriptions.queue text not null default 'default'::text
column subscriptions.priority smallint not null default 0
column subscriptions.max_attempts integer not null default 4
column subscriptions.policy text not null default 'quick'::text
column subscriptions.active boolean not null default true
column tokens.id uuid not null
column tokens.expires_at timestamp with time zone
column tokens.last_used_at timestamp with time zone
column tokens.revoked_at timestamp with time zone
column tokens.replaces uuid
column tokens.name text not null
column tokens.hash bytea not null
column tokens.hint text not null
column tokens.scope text not null
column tokens.tenants text[]
column tokens.created_at timestamp with time zone not null default ukemi.now()
column tokens.created_by text not null
column tokens.lifetime interval
column workers.id uuid not null
column workers.started_at timestamp with time zone not null default ukemi.now()
column workers.seen_at timestamp with time zone not null default ukemi.now()
column workers.missing_since timestamp with time zone
column workers.ended_at timestamp with time zone
column workers.end_reason text
column workers.concurrency integer[]
column workers.number integer not null
column workers.host text not null
column workers.pid integer not null
column workers.version text not null
column workers.handlers text[] not null
column workers.queues text[] not null
column workers.has_session boolean not null
column workers.lease_ms integer not null
constraint anomalies.anomalies_kind CHECK ((kind = ANY (ARRAY['high'::text, 'low'::text, 'silent'::text])))
constraint anomalies.anomalies_once UNIQUE (hour, source, type, kind)
constraint anomalies.anomalies_pkey PRIMARY KEY (id)
constraint attempts.attempts_outcome CHECK ((outcome = ANY (ARRAY['done'::text, 'retry'::text, 'not_yet'::text, 'dead'::text, 'returned'::text, 'crashed'::text])))
constraint attempts.attempts_pkey PRIMARY KEY (id)
constraint audit_log.audit_log_dedupe_key_key UNIQUE (dedupe_key)
constraint audit_log.audit_log_pkey PRIMARY KEY (id)
constraint clock.clock_one_check CHECK (one)
constraint clock.clock_pkey PRIMARY KEY (one)
constraint counting.counting_one_check CHECK (one)
constraint counting.counting_pkey PRIMARY KEY (one)
constraint data_keys.data_keys_pkey PRIMARY KEY (id)
constraint destination_hours.destination_hours_pkey PRIMARY KEY (destination, hour)
constraint destinations.destinations_pkey PRIMARY KEY (name)
constraint digest_key.digest_key_one_check CHECK (one)
constraint digest_key.digest_key_pkey PRIMARY KEY (one)
constraint effect_attempts.effect_attempts_pkey PRIMARY KEY (effect, number)
constraint effect_attempts.effect_attempts_result CHECK ((result = ANY (ARRAY['done'::text, 'again'::text, 'failed'::text, 'uncertain'::text, 'blocked'::text])))
constraint effect_limits.effect_limits_pkey PRIMARY KEY (effect_days)
constraint effects.effects_bounded CHECK ((((octet_length(dedupe_key) >= 1) AND (octet_length(dedupe_key) <= 255)) AND ((octet_length(kind) >= 1) AND (octet_length(kind) <= 64)) AND ((octet_length(target) >= 1) AND (octet_length(target) <= 2048)) AND ((octet_length(destination) >= 1) AND (octet_length(destination) <= 255)) AND ((octet_length(tenant) >= 1) AND (octet_length(tenant) <= 255))))
constraint effects.effects_ended CHECK (((state = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text, 'suppressed'::text])) = (ended_at IS NOT NULL)))
constraint effects.effects_money CHECK (((amount IS NULL) = (currency IS NULL)))
constraint effects.effects_pkey PRIMARY KEY (id)
constraint effects.effects_policy CHECK ((on_uncertain = ANY (ARRAY['retry'::text, 'hold'::text])))
constraint effects.effects_state CHECK ((state = ANY (ARRAY['planned'::text, 'sending'::text, 'done'::text, 'failed'::text, 'cancelled'::text, 'suppressed'::text, 'uncertain'::text, 'held'::text])))
constraint erasures.erasures_pkey PRIMARY KEY (event)
constraint event_bodies.event_bodies_pkey PRIMARY KEY (event, received_at)
constraint event_bodies_default.event_bodies_default_pkey PRIMARY KEY (event, received_at)
constraint event_hours.event_hours_counts CHECK (((LEAST(success, failed, skipped, unrouted) >= 0) AND (received >= (((success + failed) + skipped) + unrouted))))
constraint event_hours.event_hours_pkey PRIMARY KEY (source, type, hour, tenant)
constraint event_outcomes.event_outcomes_pkey PRIMARY KEY (event)
constraint event_refs.event_refs_pkey PRIMARY KEY (ref, kind, event)
constraint events.events_identity UNIQUE (event_id, source, account, livemode)
constraint events.events_pkey PRIMARY KEY (id)
constraint idempotency_keys.idempotency_keys_pkey PRIMARY KEY (caller, key)
constraint job_payloads.job_payloads_pkey PRIMARY KEY (job)
constraint jobs.jobs_pkey PRIMARY KEY (id)
constraint mail_suppressions.mail_suppressions_pkey PRIMARY KEY (address, tenant)
constraint mail_suppressions.mail_suppressions_reason CHECK ((reason = ANY (ARRAY['bounce'::text, 'complaint'::text, 'refused'::text, 'operator'::text])))
constraint migrations.migrations_pkey PRIMARY KEY (version)
constraint miscounted_hours.miscounted_hours_pkey PRIMARY KEY (hour)
constraint operation_items.operation_items_pkey PRIMARY KEY (operation, "position")
constraint operation_items.operation_items_state CHECK ((state = ANY (ARRAY['waiting'::text, 'replayed'::text, 'done'::text, 'dead'::text, 'dropped'::text, 'skipped'::text, 'gone'::text])))
constraint operations.operations_counts CHECK (((LEAST(waiting, replayed, done, dead, dropped, skipped, gone) >= 0) AND (((((((waiting + replayed) + done) + dead) + dropped) + skipped) + gone) = total)))
constraint operations.operations_finished CHECK ((((state = 'done'::text) = (finished_at IS NOT NULL)) AND ((state <> 'done'::text) OR ((waiting + replayed) = 0))))
constraint operations.operations_kind CHECK ((kind = ANY (ARRAY['replay'::text, 'drop'::text])))
constraint operations.operations_limit CHECK ((((failure_limit >= (0)::double precision) AND (failure_limit <= (1)::double precision)) AND ((failure_limit IS NULL) = (kind = 'drop'::text))))
constraint operations.operations_pkey PRIMARY KEY (id)
constraint operations.operations_rate CHECK ((rate_per_second > (0)::double precision))
constraint operations.operations_stage CHECK (((stage = ANY (ARRAY['one'::text, 'ten'::text, 'all'::text])) AND (canary OR (stage = 'all'::text)) AND ((stage = 'all'::text) = (stage_left IS NULL)) AND (stage_left >= 0)))
constraint operations.operations_state CHECK ((state = ANY (ARRAY['running'::text, 'stopped'::text, 'aborted'::text, 'done'::text])))
constraint operations.operations_stopped CHECK ((((state = ANY (ARRAY['stopped'::text, 'aborted'::text])) = (stopped_at IS NOT NULL)) AND ((stopped_at IS NULL) = (stop_reason IS NULL))))
constraint queues.queues_pkey PRIMARY KEY (name)
constraint rejections.rejections_pkey PRIMARY KEY (id)
constraint retention.retention_holder CHECK (((holder IS NULL) = (held_until IS NULL)))
constraint retention.retention_one_check CHECK (one)
constraint retention.retention_pkey PRIMARY KEY (one)
constraint retention_limits.retention_limits_pkey PRIMARY KEY (body_days, attempt_days, job_days)
constraint stale_hours.stale_hours_pkey PRIMARY KEY (hour)
constraint subscriptions.subscriptions_max_attempts_check CHECK ((max_attempts > 0))
constraint subscriptions.subscriptions_pkey PRIMARY KEY (name)
constraint tokens.tokens_bounded CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 255)))
constraint tokens.tokens_hash_key UNIQUE (hash)
constraint tokens.tokens_pkey PRIMARY KEY (id)
constraint tokens.tokens_scope CHECK ((scope = ANY (ARRAY['read'::text, 'operate'::text, 'admin'::text])))
constraint tokens.tokens_tenants CHECK ((cardinality(tenants) > 0))
constraint workers.workers_end CHECK (((ended_at IS NULL) = (end_reason IS NULL)))
constraint workers.workers_number_key UNIQUE (number)
constraint workers.workers_pkey PRIMARY KEY (id)
constraint workers.workers_reason CHECK ((end_reason = ANY (ARRAY['stopped'::text, 'replaced'::text, 'lost'::text])))
CREATE UNIQUE INDEX anomalies_once ON ukemi.anomalies USING btree (hour, source, type, kind)
CREATE UNIQUE INDEX anomalies_open ON ukemi.anomalies USING btree (source, type) WHERE (ended_at IS NULL)
CREATE UNIQUE INDEX anomalies_pkey ON ukemi.anomalies USING btree (id)
CREATE INDEX attempts_by_job ON ukemi.attempts USING btree (job, id)
CREATE UNIQUE INDEX attempts_pkey ON ukemi.attempts USING btree (id)
CREATE INDEX audit_log_by_people ON ukemi.audit_log USING btree (id) WHERE (role <> 'handler'::text)
CREATE INDEX audit_log_by_target ON ukemi.audit_log USING btree (target, id) WHERE (target IS NOT NULL)
CREATE INDEX audit_log_by_tenant ON ukemi.audit_log USING btree (tenant, id) WHERE (tenant IS NOT NULL)
CREATE UNIQUE INDEX audit_log_dedupe_key_key ON ukemi.audit_log USING btree (dedupe_key)
CREATE UNIQUE INDEX audit_log_pkey ON ukemi.audit_log USING btree (id)
CREATE UNIQUE INDEX clock_pkey ON ukemi.clock USING btree (one)
CREATE UNIQUE INDEX counting_pkey ON ukemi.counting USING btree (one)
CREATE UNIQUE INDEX data_keys_pkey ON ukemi.data_keys USING btree (id)
CREATE UNIQUE INDEX destination_hours_pkey ON ukemi.destination_hours USING btree (destination, hour)
CREATE UNIQUE INDEX destinations_pkey ON ukemi.destinations USING btree (name)
CREATE UNIQUE INDEX digest_key_pkey ON ukemi.digest_key USING btree (one)
CREATE INDEX effect_attempts_old ON ukemi.effect_attempts USING btree (ended_at, effect, number) WHERE (ended_at IS NOT NULL)
CREATE UNIQUE INDEX effect_attempts_pkey ON ukemi.effect_attempts USING btree (effect, number)
CREATE UNIQUE INDEX effect_limits_pkey ON ukemi.effect_limits USING btree (effect_days)
CREATE INDEX effects_by_cause ON ukemi.effects USING btree (cause, id) WHERE (cause IS NOT NULL)
CREATE INDEX effects_by_event ON ukemi.effects USING btree (event, id) WHERE (event IS NOT NULL)
CREATE INDEX effects_by_job ON ukemi.effects USING btree (job) WHERE (job IS NOT NULL)
CREATE INDEX effects_by_target ON ukemi.effects USING btree (target, id)
CREATE INDEX effects_by_tenant ON ukemi.effects USING btree (tenant, id) WHERE (tenant IS NOT NULL)
CREATE INDEX effects_followers ON ukemi.effects USING btree (after) WHERE (after IS NOT NULL)
CREATE UNIQUE INDEX effects_identity ON ukemi.effects USING btree (COALESCE(tenant, ''::text), kind, dedupe_key) WHERE (suppressed_by IS NULL)
CREATE INDEX effects_open ON ukemi.effects USING btree (state, id) WHERE (state <> ALL (ARRAY['done'::text, 'suppressed'::text, 'cancelled'::text]))
CREATE UNIQUE INDEX effects_pkey ON ukemi.effects USING btree (id)
CREATE UNIQUE INDEX effects_repeated ON ukemi.effects USING btree (suppressed_by, cause) WHERE (suppressed_by IS NOT NULL)
CREATE INDEX effects_sending ON ukemi.effects USING btree (destination) WHERE (state = 'sending'::text)
CREATE INDEX effects_to_prune ON ukemi.effects USING btree (ended_at, id) WHERE ((ended_at IS NOT NULL) AND (pruned_at IS NULL) AND (erased_at IS NULL))
CREATE UNIQUE INDEX erasures_pkey ON ukemi.erasures USING btree (event)
CREATE UNIQUE INDEX event_bodies_pkey ON ONLY ukemi.event_bodies USING btree (event, received_at)
CREATE UNIQUE INDEX event_bodies_default_pkey ON ukemi.event_bodies_default USING btree (event, received_at)
CREATE INDEX event_hours_by_hour ON ukemi.event_hours USING btree (hour)
CREATE UNIQUE INDEX event_hours_pkey ON ukemi.event_hours USING btree (source, type, hour, tenant)
CREATE INDEX event_outcomes_by_billing ON ukemi.event_outcomes USING btree (billing_id, event) WHERE (billing_id IS NOT NULL)
CREATE INDEX event_outcomes_by_office ON ukemi.event_outcomes USING btree (office_id, event) WHERE (office_id IS NOT NULL)
CREATE INDEX event_outcomes_by_status ON ukemi.event_outcomes USING btree (status, event) WHERE (status <> 'success'::text)
CREATE INDEX event_outcomes_by_time ON ukemi.event_outcomes USING btree (processed_at)
CREATE UNIQUE INDEX event_outcomes_pkey ON ukemi.event_outcomes USING btree (event)
CREATE INDEX event_refs_by_event ON ukemi.event_refs USING btree (event)
CREATE UNIQUE INDEX event_refs_pkey ON ukemi.event_refs USING btree (ref, kind, event)
CREATE INDEX events_by_ref ON ukemi.events USING gin (ref_ids) WITH (fastupdate='on', gin_pending_list_limit='32768') WHERE (ref_ids IS NOT NULL)
CREATE INDEX events_by_source ON ukemi.events USING btree (source, id)
CREATE INDEX events_by_tenant ON ukemi.events USING btree (tenant, id) WHERE (tenant IS NOT NULL)
CREATE INDEX events_by_time ON ukemi.events USING btree (received_at)
CREATE INDEX events_by_type ON ukemi.events USING btree (type, id)
CREATE UNIQUE INDEX events_identity ON ukemi.events USING btree (event_id, source, account, livemode)
CREATE UNIQUE INDEX events_pkey ON ukemi.events USING btree (id)
CREATE INDEX idempotency_keys_by_time ON ukemi.idempotency_keys USING btree (created_at)
CREATE UNIQUE INDEX idempotency_keys_pkey ON ukemi.idempotency_keys USING btree (caller, key)
CREATE UNIQUE INDEX job_payloads_pkey ON ukemi.job_payloads USING btree (job)
CREATE INDEX jobs_alone ON ukemi.jobs USING btree (queue, priority DESC, run_at, id) WHERE ((state = 'ready'::text) AND (recoveries > 0))
CREATE UNIQUE INDEX jobs_by_event ON ukemi.jobs USING btree (event, subscription) WHERE (event IS NOT NULL)
CREATE INDEX jobs_by_tenant ON ukemi.jobs USING btree (tenant, id) WHERE (tenant IS NOT NULL)
CREATE INDEX jobs_by_worker ON ukemi.jobs USING btree (worker) WHERE (state = 'running'::text)
CREATE INDEX jobs_dead ON ukemi.jobs USING btree (finished_at, id) WHERE (state = 'dead'::text)
CREATE INDEX jobs_dead_by_class ON ukemi.jobs USING btree (error_class, id) WHERE (state = 'dead'::text)
CREATE INDEX jobs_dead_by_event ON ukemi.jobs USING btree (event) WHERE (state = 'dead'::text)
CREATE UNIQUE INDEX jobs_dedupe ON ukemi.jobs USING btree (subscription, COALESCE(tenant, ''::text), dedupe_key) WHERE (dedupe_key IS NOT NULL)
CREATE INDEX jobs_done_by_time ON ukemi.jobs USING btree (finished_at) WHERE (state = 'done'::text)
CREATE UNIQUE INDEX jobs_key_holder ON ukemi.jobs USING btree (queue, key) WHERE key_held
CREATE UNIQUE INDEX jobs_pkey ON ukemi.jobs USING btree (id)
CREATE INDEX jobs_ready ON ukemi.jobs USING btree (queue, subscription, priority DESC, COALESCE(tenant, ''::text), run_at, id) WHERE ((state = 'ready'::text) AND (recoveries = 0))
CREATE INDEX jobs_scheduled ON ukemi.jobs USING btree (run_at) WHERE (state = 'scheduled'::text)
CREATE INDEX jobs_unfinished ON ukemi.jobs USING btree (event) WHERE (state = ANY (ARRAY['scheduled'::text, 'ready'::text, 'waiting'::text, 'running'::text]))
CREATE INDEX jobs_waiting ON ukemi.jobs USING btree (queue, key, run_at, id) WHERE (state = 'waiting'::text)
CREATE UNIQUE INDEX mail_suppressions_pkey ON ukemi.mail_suppressions USING btree (address, tenant)
CREATE UNIQUE INDEX migrations_pkey ON ukemi.migrations USING btree (version)
CREATE UNIQUE INDEX miscounted_hours_pkey ON ukemi.miscounted_hours USING btree (hour)
CREATE INDEX operation_items_by_job ON ukemi.operation_items USING btree (job)
CREATE UNIQUE INDEX operation_items_pkey ON ukemi.operation_items USING btree (operation, "position")
CREATE INDEX operation_items_replayed ON ukemi.operation_items USING btree (operation, "position") WHERE (state = 'replayed'::text)
CREATE INDEX operations_due ON ukemi.operations USING btree (next_at) WHERE ((state = 'running'::text) OR (replayed > 0))
CREATE UNIQUE INDEX operations_pkey ON ukemi.operations USING btree (id)
CREATE UNIQUE INDEX queues_pkey ON ukemi.queues USING btree (name)
CREATE UNIQUE INDEX rejections_pkey ON ukemi.rejections USING btree (id)
CREATE UNIQUE INDEX retention_pkey ON ukemi.retention USING btree (one)
CREATE UNIQUE INDEX retention_limits_pkey ON ukemi.retention_limits USING btree (body_days, attempt_days, job_days)
CREATE UNIQUE INDEX stale_hours_pkey ON ukemi.stale_hours USING btree (hour)
CREATE UNIQUE INDEX subscriptions_pkey ON ukemi.subscriptions USING btree (name)
CREATE UNIQUE INDEX tokens_hash_key ON ukemi.tokens USING btree (hash)
CREATE UNIQUE INDEX tokens_pkey ON ukemi.tokens USING btree (id)
CREATE INDEX workers_live ON ukemi.workers USING btree (number) WHERE (ended_at IS NULL)
CREATE UNIQUE INDEX workers_number_key ON ukemi.workers USING btree (number)
CREATE UNIQUE INDEX workers_pkey ON ukemi.workers USING btree (id)
CREATE TRIGGER audit_log_append_only BEFORE DELETE OR UPDATE ON ukemi.audit_log FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER audit_log_never_truncated BEFORE TRUNCATE ON ukemi.audit_log FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER data_keys_kept BEFORE DELETE ON ukemi.data_keys FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER data_keys_never_truncated BEFORE TRUNCATE ON ukemi.data_keys FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER digest_key_kept BEFORE DELETE OR UPDATE ON ukemi.digest_key FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER digest_key_never_truncated BEFORE TRUNCATE ON ukemi.digest_key FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER effects_never_deleted BEFORE DELETE ON ukemi.effects FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER effects_never_truncated BEFORE TRUNCATE ON ukemi.effects FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER erasures_append_only BEFORE DELETE OR UPDATE ON ukemi.erasures FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER erasures_never_truncated BEFORE TRUNCATE ON ukemi.erasures FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER event_bodies_append_only BEFORE DELETE OR UPDATE ON ukemi.event_bodies FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER event_bodies_never_truncated BEFORE TRUNCATE ON ukemi.event_bodies_default FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER event_hours_noted AFTER INSERT OR UPDATE ON ukemi.event_hours FOR EACH ROW WHEN ((COALESCE(current_setting('ukemi.counts_plain'::text, true), ''::text) <> 'on'::text)) EXECUTE FUNCTION ukemi.note_miscount()
CREATE TRIGGER event_outcomes_noted AFTER UPDATE ON ukemi.event_outcomes FOR EACH ROW WHEN (((old.status <> new.status) AND ((new.processed_at IS NULL) OR (NOT (new.processed_at IS DISTINCT FROM old.processed_at))))) EXECUTE FUNCTION ukemi.note_outcome_change()
CREATE TRIGGER events_append_only BEFORE DELETE OR UPDATE ON ukemi.events FOR EACH ROW EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER events_never_truncated BEFORE TRUNCATE ON ukemi.events FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
CREATE TRIGGER jobs_keep_outcomes AFTER DELETE ON ukemi.jobs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION ukemi.keep_outcomes()
CREATE TRIGGER jobs_never_truncated BEFORE TRUNCATE ON ukemi.jobs FOR EACH STATEMENT EXECUTE FUNCTION ukemi.refuse_change()
view failed_webhook_events as SELECT e.event_id,
        CASE
            WHEN b.key_id IS NULL THEN ukemi.json_or_null(b.body)
            ELSE NULL::jsonb
        END AS payload,
    COALESCE(j.error_message, j.error_class, 'unknown'::text) AS error,
    j.finished_at AS created_at
   FROM ukemi.jobs j
     JOIN ukemi.events e ON e.id = j.event
     LEFT JOIN ukemi.event_bodies b ON b.event = e.id AND b.received_at = e.received_at
  WHERE j.state = 'dead'::text;
view webhook_events as SELECT e.id,
    e.event_id,
    e.type AS event_type,
    e.source,
    o.billing_id,
    o.office_id,
        CASE
            WHEN b.key_id IS NULL THEN ukemi.json_or_null(b.body)
            ELSE NULL::jsonb
        END AS payload,
    COALESCE(o.processed_at, p.processed_at) AS processed_at,
    COALESCE(o.status, p.status, 'pending'::text) AS status,
    o.error_message,
    e.received_at AS created_at
   FROM ukemi.events e
     LEFT JOIN ukemi.event_outcomes o ON o.event = e.id
     LEFT JOIN LATERAL ukemi.plain_success(
        CASE
            WHEN o.event IS NULL THEN e.id
            ELSE NULL::uuid
        END) p(status, processed_at) ON true
     LEFT JOIN ukemi.event_bodies b ON b.event = e.id AND b.received_at = e.received_at;
CREATE OR REPLACE FUNCTION ukemi.claim_behind(last_job bigint, in_queue text, handlers text[], most integer, after_tenant text, by_worker uuid, token uuid, lease_ms integer)
 RETURNS TABLE(id bigint, queue text, kind text, handler text, tenant text, key text, attempt integer, max_attempts integer, recoveries integer, waited_ms double precision, siblings integer, payload text, event uuid, source text, account text, livemode boolean, event_id text, type text, received_ms double precision, traceparent text, body bytea, headers text, key_id text)
 LANGUAGE plpgsql
 ROWS 20
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.claim_jobs(in_queue text, handlers text[], most integer, alone boolean, after_tenant text, by_worker uuid, token uuid, lease_ms integer)
 RETURNS TABLE(id bigint, queue text, kind text, handler text, tenant text, key text, attempt integer, max_attempts integer, recoveries integer, waited_ms double precision, siblings integer, payload text, event uuid, source text, account text, livemode boolean, event_id text, type text, received_ms double precision, traceparent text, body bytea, headers text, key_id text)
 LANGUAGE plpgsql
 ROWS 20
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.events_with_ref(of_ref text)
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE
AS $function$
    select e.id from ukemi.events e where e.ref_ids @> array[of_ref]
    union
    select r.event from ukemi.event_refs r where r.ref = of_ref
  $function$
CREATE OR REPLACE FUNCTION ukemi.find_events(event_ids text[], sources text[], accounts text[], livemodes boolean[])
 RETURNS json
 LANGUAGE plpgsql
AS $function$
begin
  return (
    select coalesce(json_agg(json_build_array(a.place, e.id, e.has_dead)), '[]')
    from unnest(event_ids, sources, accounts, livemodes) with ordinality as a (event_id, source, account, livemode, place)
    -- looked up one by one: the query may be planned while the table is empty, and a join would read all of it ever after
    cross join lateral (
      select x.id, exists (select from ukemi.jobs j where j.event = x.id and j.state = 'dead') as has_dead
      from ukemi.events x
      where x.event_id = a.event_id and x.account = a.account and x.livemode = a.livemode
        and x.source || '' = a.source -- keeps the index by source out of sight
      limit 1
    ) as e
  );
end $function$
CREATE OR REPLACE FUNCTION ukemi.is_erased(event uuid)
 RETURNS boolean
 LANGUAGE sql
AS $function$ select exists (select from ukemi.erasures x where x.event = $1) $function$
CREATE OR REPLACE FUNCTION ukemi.json_or_null(body bytea)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return convert_from(body, 'UTF8')::jsonb;
exception when others then
  return null;
end $function$
CREATE OR REPLACE FUNCTION ukemi.keep_outcomes()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.key_of(key_by text, tenant text, kinds text[], ids text[])
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if key_by = 'tenant' then
    return tenant;
  end if;
  return (
    -- one tenant's key never holds up another's
    select coalesce(tenant || '/', '') || min(r.ref)
    from unnest(kinds, ids) as r (kind, ref)
    where r.kind = key_by
  );
end $function$
CREATE OR REPLACE FUNCTION ukemi.lease_jobs(taken bigint[], alone boolean, by_worker uuid, token uuid, lease_ms integer)
 RETURNS TABLE(id bigint, queue text, kind text, handler text, tenant text, key text, attempt integer, max_attempts integer, recoveries integer, waited_ms double precision, siblings integer, payload text, event uuid, source text, account text, livemode boolean, event_id text, type text, received_ms double precision, traceparent text, body bytea, headers text, key_id text)
 LANGUAGE plpgsql
 ROWS 20
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.lease_lost()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'the lease was lost' using errcode = 'UK001';
end $function$
CREATE OR REPLACE FUNCTION ukemi.make_body_months(ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET lock_timeout TO '1s'
 SET "DateStyle" TO 'ISO'
 SET "TimeZone" TO 'UTC'
AS $function$
declare
  first_month timestamptz := date_trunc('month', ukemi.now());
  month_start timestamptz;
  month_end timestamptz;
  part text;
  made integer := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('ukemi.make_body_months', 0));
  for i in 0..ahead loop
    month_start := first_month + make_interval(months => i);
    month_end := first_month + make_interval(months => i + 1);
    part := 'event_bodies_' || to_char(month_start, 'YYYYMM');
    continue when to_regclass('ukemi.' || part) is not null;
    execute format('create table ukemi.%I (like ukemi.event_bodies including defaults including constraints)', part);
    -- rows that fell into the net move over, else the month could not be attached
    perform set_config('ukemi.retention', 'on', true);
    execute format(
      'with moved as (delete from ukemi.event_bodies_default where received_at >= %L and received_at < %L returning *)
       insert into ukemi.%I select * from moved', month_start, month_end, part);
    perform set_config('ukemi.retention', '', true);
    execute format('alter table ukemi.event_bodies attach partition ukemi.%I for values from (%L) to (%L)',
      part, month_start, month_end);
    execute format('create trigger event_bodies_never_truncated before truncate on ukemi.%I
      for each statement execute function ukemi.refuse_change()', part);
    execute format('alter table ukemi.%I enable always trigger event_bodies_append_only,
      enable always trigger event_bodies_never_truncated', part);
    made := made + 1;
  end loop;
  return made;
end $function$
CREATE OR REPLACE FUNCTION ukemi.note_miscount()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into ukemi.miscounted_hours (hour) values (new.hour) on conflict do nothing;
  return null;
end $function$
CREATE OR REPLACE FUNCTION ukemi.note_outcome_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into ukemi.outcome_changes (event) values (new.event);
  return null;
end $function$
CREATE OR REPLACE FUNCTION ukemi.now()
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  moved interval;
begin
  select shift into moved from ukemi.clock;
  return clock_timestamp() + moved;
end $function$
CREATE OR REPLACE FUNCTION ukemi.outcome_of(of_event uuid)
 RETURNS TABLE(status text, error_message text, processed_at timestamp with time zone, billing_id text, office_id text)
 LANGUAGE sql
 STABLE ROWS 1
BEGIN ATOMIC
 SELECT o.status,
     o.error_message,
     o.processed_at,
     o.billing_id,
     o.office_id
    FROM ukemi.event_outcomes o
   WHERE (o.event = outcome_of.of_event)
 UNION ALL
  SELECT p.status,
     NULL::text,
     p.processed_at,
     NULL::text,
     NULL::text
    FROM ukemi.plain_success(outcome_of.of_event) p(status, processed_at)
   WHERE (NOT (EXISTS ( SELECT
            FROM ukemi.event_outcomes o
           WHERE (o.event = outcome_of.of_event))));
END
CREATE OR REPLACE FUNCTION ukemi.plain_success(of_event uuid)
 RETURNS TABLE(status text, processed_at timestamp with time zone)
 LANGUAGE sql
 STABLE ROWS 1
BEGIN ATOMIC
 SELECT 'success'::text,
     max(j.finished_at) AS max
    FROM ukemi.jobs j
   WHERE (j.event = plain_success.of_event)
  HAVING (bool_and((j.state = ANY (ARRAY['done'::text, 'cancelled'::text]))) AND bool_or((j.state = 'done'::text)));
END
CREATE OR REPLACE FUNCTION ukemi.promote_keys(in_queues text[], of_keys text[])
 RETURNS integer
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.refs_of(of_event uuid)
 RETURNS TABLE(kind text, ref text)
 LANGUAGE sql
 STABLE
AS $function$
    select u.kind, u.ref
    from ukemi.events e, unnest(e.ref_kinds, e.ref_ids) as u (kind, ref)
    where e.id = of_event
    union
    select r.kind, r.ref from ukemi.event_refs r where r.event = of_event
  $function$
CREATE OR REPLACE FUNCTION ukemi.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'DELETE' and current_setting('ukemi.retention', true) = 'on' then
    return old;
  end if;
  raise exception 'ukemi.% is append-only: % is refused', tg_table_name, tg_op
    using errcode = 'restrict_violation';
end $function$
CREATE OR REPLACE FUNCTION ukemi.settle_done(of_job bigint, of_token uuid, within text, siblings integer, billing text, office text, links jsonb, audits jsonb, took_ms double precision, by_worker uuid, trace text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.settle_many(of_jobs bigint[], of_tokens uuid[], took_ms double precision[], traces text[], by_worker uuid)
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.settle_plainly(of_jobs bigint[], of_tokens uuid[], took_ms double precision[], traces text[], by_worker uuid)
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.settle_shared(of_jobs bigint[], of_tokens uuid[], billings text[], offices text[], links jsonb, audits jsonb, took_ms double precision[], traces text[], by_worker uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 SET lock_timeout TO '2s'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.settle_together(of_jobs bigint[], of_tokens uuid[], billings text[], offices text[], links jsonb, audits jsonb, took_ms double precision[], traces text[], by_worker uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 SET lock_timeout TO '2s'
AS $function$
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
end $function$
CREATE OR REPLACE FUNCTION ukemi.unlink()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  gone text := to_jsonb(old) ->> tg_argv[1];
begin
  case tg_argv[0]
    when 'billing_id' then update ukemi.event_outcomes set billing_id = null where billing_id = gone;
    when 'office_id' then update ukemi.event_outcomes set office_id = null where office_id = gone;
    else raise exception 'ukemi.unlink takes billing_id or office_id, not %', tg_argv[0];
  end case;
  return null;
end $function$
