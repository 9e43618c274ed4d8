/** The access log of the running program: whole lines from several reactors, none lost, reopened on SIGHUP. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { ask, freePort, type Home, launch, makeHome, type RunningGateway, startProgram } from '../harness/program.ts'

const CLIENTS = 40
const REQUESTS = 15
/** Less than the lines of one load have, and more than two thirds: each load fills one file, however long it takes. */
const FULL_BYTES = CLIENTS * REQUESTS * 850

const backend = await ScriptedBackend.listen(peer => void answerAll(peer))

async function answerAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    const requests = peer.take().split('\r\n\r\n').length - 1
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'.repeat(requests))
  }
}

const homes: Home[] = []
const started: RunningGateway[] = []
after(async () => {
  for (const { program } of started) await program.kill()
  for (const home of homes) home.remove()
  backend.close()
})

async function start(sets: readonly string[]): Promise<RunningGateway> {
  const home = makeHome(backend.port)
  homes.push(home)
  const running = await startProgram(home, [
    'transport.passthru_http.reactors=2',
    `transport.passthru_http.listener.parameters.port=${await freePort()}`,
    ...sets,
  ])
  started.push(running)
  return running
}

/** So many clients at once, each with so many requests in a row. Targets start with `names`. */
async function load(port: number, name: string): Promise<void> {
  const serve = async (index: number): Promise<void> => {
    const client = await connectPeer(port)
    for (let request = 0; request < REQUESTS; request++) {
      // Long enough that a line would be cut if it were not written whole.
      client.send(`GET /t/${name}?c=${index}&r=${request}&${'x'.repeat(500)} HTTP/1.1\r\nHost: a\r\n\r\n`)
      await client.untilText('\r\n\r\nok')
      client.take()
    }
    client.destroy()
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => serve(index)))
}

/** Each request of a load has one line, and each line is a whole JSON document. */
function assertComplete(text: string, name: string): void {
  assert.ok(text.endsWith('\n'))
  const targets = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { request_target: string; status: number; source: string })
    .filter(({ request_target: target }) => target.startsWith(`/t/${name}?`))
  assert.equal(targets.length, CLIENTS * REQUESTS)
  const distinct = new Set(targets.map(({ request_target: target }) => target.split('&x')[0]))
  assert.equal(distinct.size, CLIENTS * REQUESTS)
  assert.ok(targets.every(({ status }) => status === 200))
}

const FINISHED = { code: 0, signal: null }

test('file: lines of two reactors never interleave; SIGHUP reopens the file, and no line is lost', async () => {
  const { program, home, port } = await start(['access_log.target=file', 'logging.level=debug'])
  const file = join(home.data, 'access.log')
  const rotated = join(home.data, 'access.log.1')
  await load(port, 'before')
  renameSync(file, rotated)
  const meanwhile = load(port, 'meanwhile')
  program.signal('SIGHUP')
  await meanwhile
  await eventually('the new file', () => existsSync(file))
  await load(port, 'afterwards')
  // A reader that closes the event log does not end the gateway.
  program.child.stderr!.destroy()
  await load(port, 'unheard')
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, FINISHED)

  const [old, fresh] = [readFileSync(rotated, 'latin1'), readFileSync(file, 'latin1')]
  // Lines are written in batches, so lines of a load may come after the next file is open.
  for (const name of ['before', 'meanwhile', 'afterwards', 'unheard']) assertComplete(old + fresh, name)
  assert.ok(old.includes('/t/before?'))
  assert.ok(fresh.includes('/t/afterwards?'))
})

test('stdout: lines of two reactors never interleave; lines without a reader are lost and counted', async () => {
  const { program, port, healthPort } = await start(['access_log.target=stdout', 'logging.level=debug'])
  await load(port, 'out')
  const all = (): boolean => program.out.text.split('\n').length > CLIENTS * REQUESTS
  await eventually('every line', all)
  assertComplete(program.out.text, 'out')
  program.child.stdout!.destroy()
  await load(port, 'unread')
  await program.err.until(/"msg":"standard output failed"/)
  await load(port, 'dropped')
  const metrics = await ask(healthPort, 'GET', '/metrics')
  assert.ok(Number(/^sluice_access_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]) > 0)
  assert.equal(program.err.text.match(/standard output failed/g)?.length, 1)
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, FINISHED)
})

test('file: a pipe without a reader is an error, and the start does not wait for it', async () => {
  const home = makeHome(backend.port)
  homes.push(home)
  execFileSync('mkfifo', [join(home.path, 'pipe')])
  const program = launch(home, ['access_log.target=file', `access_log.path=${join(home.path, 'pipe')}`])
  assert.deepEqual(await program.exited, { code: 1, signal: null })
  assert.match(program.said.text, /pipe cannot be written \(ENXIO\); set access_log\.path\n$/)
})

test('file: a full file is renamed by its time, no line is lost, and the oldest files are deleted', async () => {
  const rotating = ['access_log.target=file', `access_log.rotate_bytes=${FULL_BYTES}`, 'access_log.rotate_keep=2']
  const { program, home, port } = await start(rotating)
  const isRotated = (name: string): boolean => /^access\.log\.\d{8}T\d{6}Z(?:\.\d)?$/.test(name)
  const earlier = (): string[] => readdirSync(home.data).filter(isRotated)
  await load(port, 'first')
  await eventually('a renamed file', () => earlier().length === 1)
  await load(port, 'second')
  await eventually('another renamed file', () => earlier().length === 2)
  const file = join(home.data, 'access.log')
  await eventually('a new file', () => existsSync(file))
  const whole = (): string =>
    [...earlier().map(name => join(home.data, name)), file].map(path => readFileSync(path, 'latin1')).join('')
  await eventually('every line', () => whole().split('\n').length > 2 * CLIENTS * REQUESTS)
  for (const name of ['first', 'second']) assertComplete(whole(), name)
  const oldest = earlier().sort()[0]!
  await load(port, 'third')
  await eventually('the oldest file to go', () => !earlier().includes(oldest))
  assert.equal(earlier().length, 2)
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, FINISHED)
})

test('syslog: lines of a template arrive as messages; statuses that are sampled out are counted', async () => {
  const receiver = createSocket('udp4')
  receiver.bind(0, '127.0.0.1')
  await once(receiver, 'listening')
  const messages: string[] = []
  const arrived = once(receiver, 'message')
  receiver.on('message', message => messages.push(message.toString()))
  const { program, port, healthPort } = await start([
    ...['access_log.target=syslog', `access_log.syslog.url=udp://127.0.0.1:${receiver.address().port}`],
    ...[
      'access_log.format=template',
      'access_log.template=$status $request_uri $http_x_tag',
      'access_log.sampling=404=0',
    ],
  ])
  const client = await connectPeer(port)
  client.send('GET /none HTTP/1.1\r\nHost: a\r\n\r\nGET /t/a HTTP/1.1\r\nHost: a\r\nX-Tag: b"c\r\n\r\n')
  await client.untilText('\r\n\r\nok')
  await arrived
  client.destroy()
  assert.equal(messages.length, 1)
  assert.match(messages[0]!, /^<190>1 \S+Z \S+ sluice \d+ access - 200 \/t\/a b\\x22c$/)
  assert.match(await ask(healthPort, 'GET', '/metrics'), /^sluice_access_log_lines_sampled_out_total 1$/m)
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, FINISHED)
  receiver.close()
})
