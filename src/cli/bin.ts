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

// what a configuration file has opened must not keep a command alive that is done
const END_MS = 1000;
const end = () => (process.stdout.writableLength > 0 ? endSoon() : process.exit());
const endSoon = () => void setTimeout(end, END_MS).unref();
endSoon();
