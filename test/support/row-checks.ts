// What must be true of every event, job and outcome, as checks of the database that tests run on. In production they would cost as
// much as all the rest of settling a job.

export const ROW_CHECKS = `
alter table ukemi.events
  add constraint events_bounded check (
    octet_length(event_id) between 1 and 255
    and octet_length(source) between 1 and 64
    and octet_length(account) <= 255
    and octet_length(type) between 1 and 255
    and octet_length(tenant) between 1 and 255
  ),
  add constraint events_origin check (origin in ('webhook', 'reconcile', 'api', 'test')),
  add constraint events_refs check (cardinality(ref_kinds) = cardinality(ref_ids));
alter table ukemi.jobs
  add constraint jobs_state check (state in ('scheduled', 'ready', 'waiting', 'running', 'done', 'dead', 'cancelled')),
  add constraint jobs_lease check (
    (state = 'running') = (lease_until is not null)
    and (state = 'running') = (lease_token is not null)
    and (state = 'running') = (worker is not null)
  ),
  add constraint jobs_finished check ((state in ('done', 'dead', 'cancelled')) = (finished_at is not null)),
  add constraint jobs_counts check (attempt >= 0 and recoveries >= 0 and attempt <= max_attempts),
  add constraint jobs_handler check (kind <> 'handler' or (event is not null and subscription is not null)),
  add constraint jobs_death check (
    (state = 'dead') = (death is not null)
    and death in ('exhausted', 'terminal', 'crashed', 'overdue')
  ),
  add constraint jobs_key check (
    (not key_held or (key is not null and state in ('ready', 'running', 'scheduled')))
    and (key_held or key is null or state not in ('ready', 'running'))
  ),
  add constraint jobs_waiting check (state <> 'waiting' or key is not null),
  add constraint jobs_task check (kind <> 'task' or (event is null and subscription is not null));
alter table ukemi.event_outcomes
  add constraint event_outcomes_status check (status in ('pending', 'success', 'failed', 'skipped', 'unrouted'))`;
