/** `npm start` on a fresh machine: the shipped home with its sample API, the sample backend, the printed command. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { connectPeer } from '../harness/peers.ts'
import { freePort, LAUNCHER, Program } from '../harness/program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const SAMPLE = 'apis/Sample/api.yaml'
const samplePort = await freePort()
/** A copy of the shipped home whose sample API has an endpoint with a free port. */
const home = mkdtempSync(join(tmpdir(), 'sluice-sample-'))
cpSync(join(ROOT, 'conf', 'deployment.toml'), join(home, 'deployment.toml'))
mkdirSync(join(home, 'apis', 'Sample'), { recursive: true })
writeFileSync(
  join(home, SAMPLE),
  readFileSync(join(ROOT, 'conf', SAMPLE), 'utf8').replace('http://127.0.0.1:8288', `http://127.0.0.1:${samplePort}`),
)
const programs: Program[] = []
after(async () => {
  for (const program of programs) await program.kill()
  rmSync(home, { recursive: true, force: true })
})

/** The script `start` of package.json, with the Node of the tests, the copied home and free ports. */
function startCommand(): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
  const [node, ...words] = scripts.start.split(' ')
  assert.equal(node, 'node')
  const sections = ['passthru_http', 'passthru_https', 'ws', 'wss']
  const ports = sections.map(section => `transport.${section}.listener.parameters.port=0`)
  const sets = [...ports, 'management.health_port=0', 'management.port=0']
  return [process.execPath, ...words, '--home', home, ...sets.flatMap(set => ['--set', set])]
}

function run(command: string, ...words: readonly string[]): Program {
  const program = new Program(command, words, { NO_COLOR: '1' })
  programs.push(program)
  return program
}

async function post(port: number, path: string, fields: string): Promise<string> {
  const peer = await connectPeer(port)
  peer.send(`POST ${path} HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: 5\r\nConnection: close\r\n\r\nhello`)
  await peer.untilEnd()
  return peer.text
}

const LINE = /^try: (curl -i http:\/\/127\.0\.0\.1:(\d+)(\S+) -d 'hello')$/m
const hasScript = spawnSync('script', ['--version']).status === 0

test('npm start prints listeners, ready, and a command, all of them as JSON off a terminal', async () => {
  const [node, ...words] = startCommand()
  const program = run(node!, ...words)
  const [, line, port, path] = await program.said.until(LINE)
  const lines = program.said.text.trimEnd().split('\n')
  const kinds = ['http', 'https', 'ws', 'wss']
  const first = lines.findIndex(text => text.startsWith('listening'))
  for (const [i, kind] of kinds.entries())
    assert.match(lines[first + i]!, new RegExp(`^listening on ${kind}://\\*:\\d+$`))
  assert.match(lines[first + 4]!, /^1 reactor, (handles|streams), 1 API$/)
  assert.match(lines[first + 5]!, /^health on http:\/\/127\.0\.0\.1:\d+\/healthz$/)
  const rest = lines.slice(first + 6, -1)
  assert.match(rest.join('\n'), /^management and key manager on https:\/\/\S+:\d+$/m)
  assert.ok(rest.includes(`sample backend on http://127.0.0.1:${samplePort}`))
  assert.ok(rest.includes('password of admin: in the file admin-password (generated now and kept in the data folder)'))
  assert.ok(rest.includes('ready'))
  assert.equal(program.out.text, '')
  for (const text of program.err.text.trimEnd().split('\n')) assert.ok('msg' in JSON.parse(text), text)
  const secret = readFileSync(join(home, 'data', 'admin-password'), 'utf8').trim()
  assert.ok(!program.err.text.includes(secret), 'the password is in its file alone')

  const refused = await post(Number(port), path!, '')
  assert.match(refused, /^HTTP\/1\.1 401 /)
  assert.match(refused, /"code":900902,/)
  const token = spawnSync(process.execPath, [LAUNCHER, 'token', 'Sample', '--home', home], { encoding: 'utf8' })
  const accepted = await post(Number(port), path!, `Authorization: Bearer ${token.stdout.trim()}\r\n`)
  assert.match(accepted, /^HTTP\/1\.1 200 OK\r\n/)
  assert.ok(accepted.includes('hello'))
  assert.ok(line)
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, { code: 0, signal: null })
})

test('npm start prints text on a terminal, with a password and a command that works as it is', {
  skip: hasScript ? false : 'the program "script" is not installed',
}, async () => {
  rmSync(join(home, 'data'), { recursive: true, force: true })
  const words = startCommand().map(word => `'${word}'`)
  const program = run('script', '-qefc', `echo "process $$"; exec ${words.join(' ')}`, '/dev/null')
  const [, pid] = await program.out.until(/^process (\d+)\r$/m)
  try {
    const [, line] = await program.out.until(
      /^try: (curl -i http:\/\/127\.0\.0\.1:\S+ -d 'hello' -H 'Authorization: Bearer [\w.-]+')\r$/m,
    )
    assert.match(program.out.text, /^password of admin: [\w-]{24,} \(generated now and kept in the data folder\)\r$/m)
    if (spawnSync('curl', ['--version']).status !== 0) return
    const { status, stdout } = spawnSync('sh', ['-c', line!], { encoding: 'utf8' })
    assert.equal(status, 0)
    assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n/)
    assert.ok(stdout.includes('hello'))
  } finally {
    process.kill(Number(pid), 'SIGTERM')
    await program.exited
  }
})

test('npm start names the file to edit if the port of the sample backend is taken', async t => {
  const holder = createServer().listen(samplePort, '127.0.0.1')
  await once(holder, 'listening')
  t.after(() => holder.close())
  const [node, ...words] = startCommand()
  const program = run(node!, ...words)
  assert.deepEqual(await program.exited, { code: 1, signal: null })
  assert.match(
    program.err.text,
    new RegExp(`127\\.0\\.0\\.1:${samplePort}: the port is taken: .* in ${join(home, SAMPLE)}"}\\n$`),
  )
  assert.equal(program.out.text, '')
})
