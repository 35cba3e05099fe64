// The flow of an agent through the client of the MCP project: tools, files, progress, cancellation and
// resources, over HTTP and over the standard streams of a local program.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { API, KEY, BINARY, ROOT, PAGE, CACHE } = process.env

async function connect(transport) {
  const client = new Client({ name: 'agent', version: '1' })
  await client.connect(transport)
  return client
}

// use calls a tool that must succeed, and returns its text and its content.
async function use(client, name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options)
  assert.ok(!result.isError, `${name}: ${result.content[0].text}`)
  return { text: result.content[0].text, content: result.content }
}

const remote = await connect(
  new StreamableHTTPClientTransport(new URL('/mcp', API), { requestInit: { headers: { Authorization: `Bearer ${KEY}` } } }),
)
const { tools } = await remote.listTools()
for (const name of ['list_formats', 'convert', 'compress', 'merge', 'split', 'ocr', 'inspect', 'read_document', 'upload', 'import']) {
  const tool = tools.find((t) => t.name === name)
  assert.ok(tool?.description && tool.inputSchema.type === 'object', `tool ${name}`)
}
const report = await readFile('report.docx')
const { text: key } = await use(remote, 'upload', { name: 'report.docx', base64: report.toString('base64') })
assert.match((await use(remote, 'read_document', { file: key })).text, /# Summary/)

const seen = []
const pdf = await use(remote, 'convert', { file: key, convert_to: 'pdf' }, { onprogress: (p) => seen.push(p.progress) })
assert.ok(seen.length > 0 && seen.every((p) => p > 0 && p <= 100), `progress ${seen}`)
const link = pdf.content.find((c) => c.type === 'resource_link')
const { contents } = await remote.readResource({ uri: link.uri })
assert.ok(Buffer.from(contents[0].blob, 'base64').subarray(0, 5).equals(Buffer.from('%PDF-')))

const { text: imported } = await use(remote, 'import', { url: PAGE, name: 'page.html' })
assert.match((await use(remote, 'read_document', { file: imported })).text, /From a URL/)
const refused = await remote.callTool({ name: 'import', arguments: { url: 'file:///etc/passwd' } })
assert.ok(refused.isError && /http/.test(refused.content[0].text), JSON.stringify(refused))

const stop = new AbortController()
const cancelled = remote.callTool({ name: 'convert', arguments: { file: key, convert_to: 'pdf' } }, undefined, { signal: stop.signal })
stop.abort()
await assert.rejects(cancelled)
await remote.close()

const local = await connect(new StdioClientTransport({ command: BINARY, args: ['mcp', '--root', ROOT, '--cache-dir', CACHE] }))
await use(local, 'convert', { file: 'photo.jpg', convert_to: 'png', width: 40 })
assert.match((await use(local, 'inspect', { file: 'photo.png' })).text, /"width": 40/)
await local.close()
console.log('ok')
