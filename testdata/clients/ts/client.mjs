// Checks a server against the TypeScript SDK 1: node client.mjs SERVER [ARG …]
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "clients", version: "1" });

async function call(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError && result.structuredContent, `${name}: ${JSON.stringify(result)}`);
  return result;
}

await client.connect(new StdioClientTransport({ command, args }));
try {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), ["execute_code", "initialize_sandbox", "list_sandboxes", "stop_sandbox"]);

  const { sandbox_id } = (await call("initialize_sandbox")).structuredContent;
  const ran = await call("execute_code", { language: "python", code: "print(6*7)", sandbox_id });
  assert.equal(ran.content[0].text.trim(), "42");
  assert.equal(ran.structuredContent.stdout, "42\n");
  await call("stop_sandbox", { sandbox_id });
} finally {
  await client.close(); // the server removes its containers
}
console.log("typescript sdk 1: 3 tools ok");
