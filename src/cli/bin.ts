#!/usr/bin/env node
// What `ukemi` starts.
import { main } from "./main.ts";

// `ukemi doctor | head` closes our output early: that is the reader's right, not a fault
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

process.exitCode = await main(process.argv.slice(2));
