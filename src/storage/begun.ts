// Which of the jobs that a worker held may have begun when it was heard of last. Nothing is written when one begins.

/**
 * The jobs that workers hold, each with its place among those of its queue, for a CTE named `places`. Jobs begin in the order in
 * which they were claimed. Those that run alone are claimed alone, and have no place.
 */
export const PLACES = `
  select j.id, row_number() over (partition by j.worker, j.queue order by j.started_at, j.id) as place
  from ukemi.jobs j
  where j.state = 'running' and j.recoveries = 0`;

/**
 * True for jobs that may have begun. Before one begins all but so many of those before it have ended as run at once; twice as
 * many, because a job that is inserted as claimed, and one that a claim under way brings, may come in either order. Of a worker
 * that did not say how many it runs at once, all that it held.
 */
export const mayHaveBegun = (job: string) => `(
  ${job}.started_at is not null and not exists (
    select from places p
    join ukemi.workers w on w.id = ${job}.worker
    where p.id = ${job}.id and p.place > 2 * w.concurrency[array_position(w.queues, ${job}.queue)]
  )
)`;
