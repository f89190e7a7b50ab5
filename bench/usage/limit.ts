// The limit: undici and nothing else. The bodies of all batches are made before the clock runs, and posted one after another.
import { readFile } from "node:fs/promises";
import { Agent, request } from "undici";
import { answerBench } from "../program.ts";

const BATCH = 500;

async function push({ file, port }: { file: string; port: number }): Promise<number> {
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  const bodies: string[] = [];
  for (let at = 0; at < lines.length; at += BATCH) {
    bodies.push(
      `{"tenant_id":"bench","export_metadata":{},"records":[${lines.slice(at, at + BATCH).join(",")}]}`,
    );
  }
  const dispatcher = new Agent({ connections: 1 });
  const headers = { authorization: "Bearer bench", "content-type": "application/json" };
  const startedAt = performance.now();
  for (const body of bodies) {
    const answer = await request(`http://127.0.0.1:${port}/v1/usage`, {
      method: "POST",
      dispatcher,
      headers,
      body,
    });
    await answer.body.text();
  }
  const rate = (lines.length * 1000) / (performance.now() - startedAt);
  await dispatcher.close();
  return rate;
}

answerBench({ push });
