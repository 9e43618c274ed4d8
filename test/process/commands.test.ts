/** The commands that call a running gateway, which was started as operators start it. */
import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { ConnectionRow } from '../../src/observe/connection-list.ts'
import type { Side } from '../../src/protocol/machine.ts'
import type { StateName } from '../../src/protocol/states.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  backend,
  begin,
  dial,
  home,
  leave,
  listed,
  type ListedConnections,
  SILENT,
  sluice,
  start,
  startTwo,
  untilListed,
} from '../harness/operator.ts'
import { LEVEL } from '../harness/socket-level.ts'
import { ask, freePort, PLAIN_ONLY } from '../harness/program.ts'

after(leave)

const nobody = home()
const [one, two] = await Promise.all([start(), startTwo({ SLUICE_TEST_HOOKS: '1' })])

test('without a running gateway, commands say so and exit with 1', async () => {
  const at = home()
  for (const words of [['connections'], ['walk', '/t/']]) {
    const { code, out, err } = await sluice(at, ...words)
    assert.deepEqual([code, out], [1, ''])
    assert.equal(
      err,
      `no gateway runs with the data folder ${at.data}; start one, or name the one that runs with --home or --data\n`,
    )
  }
})

test('an invalid command line exits with 2', async () => {
  for (const words of [
    ['walk'],
    ['walk', '/a', '/b'],
    ['walk', 'ftp://host/'],
    ['walk', '/', '-H', 'no colon'],
    ['connections', 'x'],
    ['connections', '--side', 'left'],
    ['connections', '--state', 'OPEN'],
    ['connections', '--limit', '-1'],
  ]) {
    const { code, out } = await sluice(nobody, ...words)
    assert.deepEqual([code, out], [2, ''], words.join(' '))
  }
})

test('each command has a help text', async () => {
  for (const command of ['why', 'walk', 'connections', 'api']) {
    const { code, out } = await sluice(nobody, command, '--help')
    assert.equal(code, 0)
    assert.ok(out.startsWith(`Usage:\n  sluice ${command} `), out)
    assert.match(out, /--home DIR/)
  }
})

test('connections: lists both sides of an exchange in flight, with secrets masked', async () => {
  const client = await dial(one)
  client.send(`GET /t${SILENT}?a=1&token=abc HTTP/1.1\r\nHost: a\r\n\r\n`)
  const { reactors, silent } = await untilListed(one.home, 'REQUEST_DONE', 'target')
  assert.deepEqual(silent, [])
  assert.deepEqual(reactors[0]!.counts, { source: { REQUEST_DONE: 1 }, target: { REQUEST_DONE: 1 } })
  assert.equal(reactors[0]!.omitted, 0)
  const [source, target] = reactors[0]!.rows
  assert.ok(source!.ageMs >= 0)
  assert.deepEqual(source, {
    id: 'http-incoming-1',
    side: 'source',
    state: 'REQUEST_DONE',
    peer: '127.0.0.1',
    ageMs: source!.ageMs,
    api: 'Test',
    method: 'GET',
    path: `/t${SILENT}?a=1&token=***`,
    backend: `127.0.0.1:${backend.port}`,
    partner: 'http-outgoing-1',
    scheme: 'http',
  })
  assert.deepEqual(
    [target!.id, target!.side, target!.state, target!.partner, target!.path, target!.peer, target!.scheme],
    ['http-outgoing-1', 'target', 'REQUEST_DONE', 'http-incoming-1', source!.path, '127.0.0.1', 'http'],
  )
})

test('each gateway has its own control socket while it runs', async () => {
  assert.equal(statSync(join(one.home.data, 'control.sock')).mode & 0o777, 0o600)
  const client = await dial(one)
  client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await takeResponse(client)
  assert.deepEqual((await listed(one.home)).reactors[0]!.counts.source, { REQUEST_DONE: 1, REQUEST_READY: 1 })
  assert.deepEqual(
    (await listed(two.home)).reactors.map(({ counts }) => counts.source),
    [{}, {}],
  )
})

test('connections: counts all reactors, filters by side and state, and obeys the limit', async () => {
  for (let count = 0; count < 12; count++) {
    const client = await dial(two)
    client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(client)).body, 'ok')
  }
  const begun = await dial(two)
  begun.send('GET /t/ HT')
  const { reactors } = await untilListed(two.home, 'REQUEST_HEAD', 'source')
  assert.equal(reactors.length, 2)
  const sum = (side: Side, state: StateName): number =>
    reactors.reduce((total, { counts }) => total + (counts[side]?.[state] ?? 0), 0)
  assert.equal(sum('source', 'REQUEST_READY'), 12)
  assert.equal(sum('source', 'REQUEST_HEAD'), 1)
  const rows = (found: ListedConnections): readonly ConnectionRow[] => found.reactors.flatMap(reactor => reactor.rows)
  assert.equal(rows({ reactors, silent: [] }).length, 13 + sum('target', 'REQUEST_READY'))
  const inHead = rows(await listed(two.home, '--state', 'request_head'))
  assert.deepEqual(
    inHead.map(({ side, state }) => [side, state]),
    [['source', 'REQUEST_HEAD']],
  )
  const targets = await listed(two.home, '--side', 'target', '--limit', '0')
  assert.deepEqual(rows(targets), [])
  assert.equal(
    targets.reactors.reduce((total, { omitted }) => total + omitted, 0),
    sum('target', 'REQUEST_READY'),
  )
  const { out } = await sluice(two.home, 'connections', '--side', 'source', '--limit', '1')
  assert.match(out, /^ {4}13 client connections {2}REQUEST_READY 12 · REQUEST_HEAD 1$/m)
  assert.match(out, /^http-incoming-\d+ {2,}[01] {2,}/m)
  assert.match(out, /^and 11 more: --limit N shows them$/m)
})

test('connections: a reactor that hangs is listed as silent, beside the connections of the others', async () => {
  await ask(two.healthPort, 'POST', '/test/hang')
  const { code, out, err } = await sluice(two.home, 'connections', '--json')
  assert.equal(code, 1)
  assert.equal(err, 'reactor 0 did not answer: it is busy, or hangs\n')
  const { reactors, silent }: ListedConnections = JSON.parse(out)
  assert.deepEqual([reactors.map(({ reactor }) => reactor), silent], [[1], [0]])
})

test('the socket of a killed gateway is replaced by the next one', async () => {
  const socket = join(one.home.data, 'control.sock')
  await one.program.kill()
  assert.ok(existsSync(socket))
  assert.equal((await sluice(one.home, 'connections')).code, 1)
  const next = await start(one.home)
  assert.equal((await sluice(one.home, 'connections')).code, 0)
  next.program.signal('SIGTERM')
  assert.deepEqual(await next.program.exited, { code: 0, signal: null })
  assert.ok(!existsSync(socket))
})

test('a gateway that a second signal ends removes its socket', async () => {
  two.program.signal('SIGTERM')
  await two.program.err.until(/finishing what is in flight/)
  two.program.signal('SIGTERM')
  await two.program.exited
  assert.ok(!existsSync(join(two.home.data, 'control.sock')))
})

test('where the path is too long for a socket, the gateway warns and runs', async () => {
  const at = home()
  const data = join(at.path, 'd'.repeat(100))
  const port = await freePort()
  const http = 'transport.passthru_http.'
  const own = [`${http}listener.parameters.port=${port}`, `${http}socket_level=${LEVEL}`]
  const sets = [...PLAIN_ONLY, 'management.health_port=0', ...own]
  const program = begin(at, 'start', '--data', data, ...sets.flatMap(set => ['--set', set]))
  await program.said.until(/^ready$/m)
  await program.err.until(/"msg":"no control socket .*104 bytes/)
  assert.match(await ask(port, 'GET', '/t/'), /^HTTP\/1\.1 200 /)
})
