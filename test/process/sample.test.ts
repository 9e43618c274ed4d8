/** `npm start`, as on a fresh machine: the home in `conf/`, the sample backend, and the line to paste. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connectPeer } from '../harness/peers.ts'
import { Program } from '../harness/program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const data = mkdtempSync(join(tmpdir(), 'sluice-data-'))
let program: Program | undefined
after(async () => {
  await program?.kill()
  rmSync(data, { recursive: true, force: true })
})

/** The command of the script, on the Node that runs the tests, on free ports. */
function startScript(): Program {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
  const [node, ...words] = scripts.start.split(' ')
  assert.equal(node, 'node')
  const sections = ['passthru_http', 'passthru_https', 'ws', 'wss']
  const ports = sections.map(section => `transport.${section}.listener.parameters.port=0`)
  const sets = [...ports, 'management.health_port=0', 'management.port=0']
  return new Program(process.execPath, [...words, '--data', data, ...sets.flatMap(set => ['--set', set])])
}

async function post(port: number, path: string, fields: string): Promise<string> {
  const peer = await connectPeer(port)
  peer.send(`POST ${path} HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: 5\r\nConnection: close\r\n\r\nhello`)
  await peer.untilEnd()
  return peer.text
}

/** The sample's port is a fixed one, and somebody on this machine may be trying the sample at the moment. */
async function startSample(): Promise<Program> {
  for (let attempt = 1; ; attempt++) {
    const started = startScript()
    const ready = started.out.until(/^ready$/m).then(() => true)
    if (await Promise.race([ready, started.exited.then(() => false)])) return started
    ready.catch(() => {})
    if (attempt === 30 || !started.err.text.includes('the port is taken')) throw new Error(started.err.text)
    await wait(500)
  }
}

const LINE = /^try: (curl -i http:\/\/127\.0\.0\.1:(\d+)(\S+) -d 'hello' -H '(Authorization: Bearer [\w.-]+)')$/m

test('npm start: listeners, ready, and one line that works when pasted, with the token that it needs', async () => {
  program = await startSample()
  const [, line, port, path, field] = await program.out.until(LINE)
  const lines = program.out.text.trimEnd().split('\n')
  const kinds = ['http', 'https', 'ws', 'wss']
  for (const [i, kind] of kinds.entries()) assert.match(lines[i]!, new RegExp(`^listening on ${kind}://\\*:\\d+$`))
  assert.match(lines[4]!, /^1 reactor, (handles|streams), 1 API$/)
  assert.match(lines[5]!, /^health on http:\/\/127\.0\.0\.1:\d+\/healthz$/)
  const rest = lines.slice(6, -1).join('\n')
  assert.match(rest, /^management and key manager on https:\/\/\S+:\d+$/m)
  assert.match(rest, /^sample backend on http:\/\/127\.0\.0\.1:8288$/m)
  assert.match(rest, /^password of admin: \S+ \(made now, and kept in the data folder\)$/m)
  assert.match(rest, /^ready$/m)

  const answer = await post(Number(port), path!, `${field}\r\n`)
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
  assert.ok(answer.includes('hello'))
  const refused = await post(Number(port), path!, '')
  assert.match(refused, /^HTTP\/1\.1 401 /)
  assert.match(refused, /"code":900902,/)

  const isCurlHere = spawnSync('curl', ['--version']).status === 0
  if (isCurlHere) {
    const { status, stdout } = spawnSync('sh', ['-c', line!], { encoding: 'utf8' })
    assert.equal(status, 0)
    assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n/)
    assert.ok(stdout.includes('hello'))
  }
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, { code: 0, signal: null })
})

test('npm start where the sample port is taken says what to do', async t => {
  const holder = createServer()
  // Somebody else may have it; it is taken then, too.
  const settled = Promise.race([once(holder, 'listening'), once(holder, 'error')])
  holder.listen(8288, '127.0.0.1')
  await settled.catch(() => {})
  t.after(() => holder.close())
  // Ended in any case: the port may be free again by now.
  await program?.kill()
  program = startScript()
  assert.deepEqual(await program.exited, { code: 1, signal: null })
  assert.match(
    program.err.text,
    /127\.0\.0\.1:8288: the port is taken\. Stop what uses that port.*npm run sluice -- start/,
  )
  assert.equal(program.out.text, '')
})
