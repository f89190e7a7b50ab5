#!/usr/bin/env node
// What `ukemi` starts.
import { main } from "./main.ts";

process.exitCode = await main(process.argv.slice(2));
