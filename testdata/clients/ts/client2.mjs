// Checks a server against the TypeScript client 2: node client2.mjs SERVER [ARG …]
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [command, ...args] = process.argv.slice(2);
// Unasked, it would use the old handshake, which client.mjs checks already.
const client = new Client({ name: "clients", version: "1" }, { versionNegotiation: { mode: "auto" } });

async function call(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError && result.structuredContent, `${name}: ${JSON.stringify(result)}`);
  return result;
}

await client.connect(new StdioClientTransport({ command, args }));
try {
  assert.equal(client.getProtocolEra(), "modern");
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
console.log("typescript client 2: 3 tools ok");
