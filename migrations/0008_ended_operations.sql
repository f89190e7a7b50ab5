-- Retention of operations that have ended.
-- compatible-with: 1

-- how many were removed since the last audit, as the other counts of this row
alter table ukemi.retention add column operations bigint not null default 0;
