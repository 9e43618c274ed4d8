/** The control socket: its permissions, its response to bad requests, and its end. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { sendCommand, ControlError, ControlClient } from '../../src/cli/control-client.ts'
import {
  type CommandHandler,
  ControlSocket,
  controlSocketPath,
  CommandRefused,
} from '../../src/primary/control-socket.ts'
import { eventually, Peer } from '../harness/peers.ts'
import { Program } from '../harness/program.ts'

const root = mkdtempSync(join(tmpdir(), 'sluice-control-'))
const opened: ControlSocket[] = []
const clients: Peer[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
  for (const socket of opened.splice(0)) socket.close()
})
after(() => rmSync(root, { recursive: true }))

let folders = 0
function folder(): string {
  return mkdtempSync(join(root, `${folders++}-`))
}

const COMMANDS: Readonly<Record<string, CommandHandler>> = {
  echo: request => ({ request }),
  refuse: () => {
    throw new CommandRefused('not today')
  },
  throw: () => {
    throw new Error('a bug')
  },
  twice: async (_, client) => {
    client.send({ line: 1 })
    return { line: 2 }
  },
  wait: (_, client) => {
    const { promise, resolve } = Promise.withResolvers<object>()
    client.gone.addEventListener('abort', () => resolve({ left: true }))
    client.send({ waiting: true })
    return promise
  },
}

async function open(dataDir: string, warnings: string[] = []): Promise<ControlSocket | null> {
  const socket = await ControlSocket.open(dataDir, COMMANDS, cause => warnings.push(cause))
  if (socket !== null) opened.push(socket)
  return socket
}

async function dial(dataDir: string): Promise<Peer> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket: Socket = connect({ path: controlSocketPath(dataDir), allowHalfOpen: true }, resolve)
  socket.once('error', reject)
  await promise
  const peer = new Peer(socket)
  clients.push(peer)
  return peer
}

/** The response to these bytes, up to the end. */
async function tell(dataDir: string, bytes: string): Promise<string> {
  const peer = await dial(dataDir)
  peer.send(bytes)
  await peer.untilEnd()
  peer.end()
  return peer.text
}

test('the socket has mode 0600, and closing removes it', async () => {
  const dataDir = folder()
  const socket = await open(dataDir)
  assert.equal(statSync(controlSocketPath(dataDir)).mode & 0o777, 0o600)
  socket!.close()
  assert.ok(!existsSync(controlSocketPath(dataDir)))
})

test('a request is one line, and the last line is its response', async () => {
  const dataDir = folder()
  await open(dataDir)
  assert.equal(await tell(dataDir, '{"command":"echo","x":[1]}\n'), '{"request":{"command":"echo","x":[1]}}\n')
  assert.equal(await tell(dataDir, '{"command":"twice"}\n'), '{"line":1}\n{"line":2}\n')
  assert.equal(await tell(dataDir, '{"command":"refuse"}\n'), '{"error":"not today"}\n')
  assert.equal(await tell(dataDir, '{"command":"throw"}\n'), '{"error":"failed: Error: a bug"}\n')
})

const ONLY = '{"error":"unknown command; the commands are echo, refuse, throw, twice, wait"}\n'
const NO_JSON = '{"error":"expected a line of JSON"}\n'
const NO_COMMAND = '{"error":"expected {\\"command\\": \\"…\\"}"}\n'

for (const [what, bytes, answer] of [
  ['an unknown command', '{"command":"x"}\n', ONLY],
  ['a property that objects inherit', '{"command":"toString"}\n', ONLY],
  ['text', 'hello\n', NO_JSON],
  ['an empty line', '\n', NO_JSON],
  ['a request of another protocol', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', NO_JSON],
  ['JSON that is no object', '[1]\n', NO_COMMAND],
  ['null', 'null\n', NO_COMMAND],
  ['a command that is no text', '{"command":1}\n', NO_COMMAND],
  ['a line of more than 64 KiB', 'x'.repeat(70_000), '{"error":"a request has at most 65536 bytes"}\n'],
] as const) {
  test(`${what} gets an error line, and the next client is served`, async () => {
    const dataDir = folder()
    await open(dataDir)
    const text = await tell(dataDir, bytes)
    assert.equal(Buffer.from(text, 'latin1').toString(), answer)
    assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
  })
}

test('a client that ends within a line gets an error line', async () => {
  const dataDir = folder()
  await open(dataDir)
  const peer = await dial(dataDir)
  peer.send('{"command"')
  peer.end()
  await peer.untilEnd()
  assert.equal(peer.text, NO_JSON)
})

test('a command is told that its client has left', async () => {
  const dataDir = folder()
  await open(dataDir)
  const peer = await dial(dataDir)
  peer.send('{"command":"wait"}\n')
  await peer.untilText('{"waiting":true}\n')
  peer.end()
  await peer.untilEnd()
  assert.equal(peer.text, '{"waiting":true}\n{"left":true}\n')
})

test('the ninth client at a time is refused, and served once another one has left', async () => {
  const dataDir = folder()
  await open(dataDir)
  const waiting: Peer[] = []
  for (let count = 0; count < 8; count++) {
    const peer = await dial(dataDir)
    peer.send('{"command":"wait"}\n')
    await peer.untilText('waiting')
    waiting.push(peer)
  }
  assert.equal(await tell(dataDir, ''), '{"error":"busy: 8 commands are running"}\n')
  waiting[0]!.end()
  await waiting[0]!.until('its end', peer => peer.isClosed)
  assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
})

test('the connection of a refused client is closed, whatever the client has sent', async () => {
  const dataDir = folder()
  await open(dataDir)
  for (let i = 0; i < 8; i++) await dial(dataDir)
  const peer = await dial(dataDir)
  peer.send('{"command":"echo"}\n')
  await peer.untilEnd()
  const left = openPipes() - 2
  peer.destroy()
  await eventually('both ends are gone', () => openPipes() === left)
})

/** Unix sockets of this process, both ends. */
function openPipes(): number {
  return process.getActiveResourcesInfo().filter(kind => kind === 'PipeWrap').length
}

test('a socket that another process uses is not replaced', async () => {
  const dataDir = folder()
  await open(dataDir)
  const warnings: string[] = []
  assert.equal(await open(dataDir, warnings), null)
  assert.match(warnings[0]!, /another process uses it$/)
  assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
})

test('the socket of a killed process is replaced', async () => {
  const dataDir = folder()
  const code = `import { createServer } from 'node:net'
    createServer().listen(${JSON.stringify(controlSocketPath(dataDir))}, () => console.log('here'))`
  const program = new Program(process.execPath, ['--input-type=module', '-e', code])
  await program.out.until(/here/)
  await program.kill()
  assert.ok(existsSync(controlSocketPath(dataDir)))
  await open(dataDir)
  assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
})

test('a file that is no socket is not removed', async () => {
  const dataDir = folder()
  writeFileSync(controlSocketPath(dataDir), 'mine')
  const warnings: string[] = []
  assert.equal(await open(dataDir, warnings), null)
  assert.match(warnings[0]!, /a file that is no socket has this name$/)
  assert.ok(existsSync(controlSocketPath(dataDir)))
})

test('a path that is too long for a socket is a warning', async () => {
  const warnings: string[] = []
  assert.equal(await open(join(root, 'x'.repeat(100)), warnings), null)
  assert.match(warnings[0]!, /^no control socket .*104 bytes or more; use a shorter --data$/)
})

test('the client says why it cannot connect', async () => {
  const nobody = folder()
  await assert.rejects(
    ControlClient.connect(nobody),
    new ControlError(
      `no gateway runs with the data folder ${nobody}; start one, or name the one that runs with --home or --data`,
    ),
  )
  await assert.rejects(ControlClient.connect(join(root, 'x'.repeat(100))), /the path of the control socket is too long/)
  const dataDir = folder()
  await open(dataDir)
  await assert.rejects(sendCommand(dataDir, { command: 'refuse' }), new ControlError('not today'))
  assert.deepEqual(await sendCommand(dataDir, { command: 'echo', text: 'ü\n' }), {
    request: { command: 'echo', text: 'ü\n' },
  })
})

test('the client reads lines however they are cut: many pieces, and several lines in one', async t => {
  const dataDir = folder()
  const long = 'x'.repeat(300_000)
  const server = createServer(socket => {
    socket.end(`{"line":1,"text":"${long}"}\n{"line":2}\n{"line":3}\n`)
  })
  t.after(() => server.close())
  await new Promise<void>(resolve => server.listen(controlSocketPath(dataDir), resolve))
  const client = await ControlClient.connect(dataDir)
  const first = await client.send<{ line: number; text: string }>({ command: 'any' })
  assert.deepEqual([first.line, first.text], [1, long])
  assert.deepEqual([await client.receive(), await client.receive()], [{ line: 2 }, { line: 3 }])
  await assert.rejects(client.receive(), /the gateway has closed the control connection/)
  client.close()
})

test('the client reports a connection that ends without a response', async t => {
  const dataDir = folder()
  const server = createServer(socket => socket.end('{"half')).listen(controlSocketPath(dataDir))
  t.after(() => server.close())
  await assert.rejects(sendCommand(dataDir, { command: 'echo' }), /has closed the control connection/)
})

test('a client that waits for a command is not closed for its silence', async () => {
  const at = folder()
  const done = Promise.withResolvers<object>()
  const commands = { slow: () => done.promise }
  const socket = await ControlSocket.open(at, commands, cause => assert.fail(cause), 50)
  opened.push(socket!)
  const answer = sendCommand(at, { command: 'slow' })
  const idle = await dial(at)
  // The silent client is closed after the time-out of the waiting one would have passed.
  await idle.untilEnd()
  done.resolve({ done: true })
  assert.deepEqual(await answer, { done: true })
})
