-- What happened within an hour is found by an index in the order of time, wherever the rows lie.
-- compatible-with: 1

-- A block range index is right only while rows lie in the order in which they came. They do not: a vacuum hands out the room
-- that is left in old pages, so that after a while every range holds something of today, and the count of one hour read
-- millions of events.
drop index ukemi.events_by_time;
create index events_by_time on ukemi.events (received_at);
drop index ukemi.event_outcomes_by_time;
create index event_outcomes_by_time on ukemi.event_outcomes (processed_at);
