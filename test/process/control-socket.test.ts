/** The control socket: who may open it, what it does with nonsense, and what it leaves behind. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { askOnce, CannotAsk, Control } from '../../src/cli/ask.ts'
import { type ControlCommand, ControlSocket, controlPath, Refused } from '../../src/primary/control-socket.ts'
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

const COMMANDS: Readonly<Record<string, ControlCommand>> = {
  echo: request => ({ request }),
  refuse: () => {
    throw new Refused('not today')
  },
  throw: () => {
    throw new Error('a bug')
  },
  twice: async (_, client) => {
    client.say({ line: 1 })
    return { line: 2 }
  },
  wait: (_, client) => {
    const { promise, resolve } = Promise.withResolvers<object>()
    client.gone.addEventListener('abort', () => resolve({ left: true }))
    client.say({ waiting: true })
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
  const socket: Socket = connect({ path: controlPath(dataDir), allowHalfOpen: true }, resolve)
  socket.once('error', reject)
  await promise
  const peer = new Peer(socket)
  clients.push(peer)
  return peer
}

/** What comes back for these bytes, up to the end. */
async function tell(dataDir: string, bytes: string): Promise<string> {
  const peer = await dial(dataDir)
  peer.send(bytes)
  await peer.untilEnd()
  peer.end()
  return peer.text
}

test('the socket is its user’s alone, and gone when it is closed', async () => {
  const dataDir = folder()
  const socket = await open(dataDir)
  assert.equal(statSync(controlPath(dataDir)).mode & 0o777, 0o600)
  socket!.close()
  assert.ok(!existsSync(controlPath(dataDir)))
})

test('a request is a line, and so is its answer', async () => {
  const dataDir = folder()
  await open(dataDir)
  assert.equal(await tell(dataDir, '{"command":"echo","x":[1]}\n'), '{"request":{"command":"echo","x":[1]}}\n')
  assert.equal(await tell(dataDir, '{"command":"twice"}\n'), '{"line":1}\n{"line":2}\n')
  assert.equal(await tell(dataDir, '{"command":"refuse"}\n'), '{"error":"not today"}\n')
  assert.equal(await tell(dataDir, '{"command":"throw"}\n'), '{"error":"failed: Error: a bug"}\n')
})

const ONLY = '{"error":"there is only: echo, refuse, throw, twice, wait"}\n'
const NO_JSON = '{"error":"expected a line of JSON"}\n'
const NO_COMMAND = '{"error":"expected {\\"command\\": \\"…\\"}"}\n'

for (const [what, bytes, answer] of [
  ['an unknown command', '{"command":"x"}\n', ONLY],
  ['a command that objects inherit', '{"command":"toString"}\n', ONLY],
  ['text', 'hello\n', NO_JSON],
  ['an empty line', '\n', NO_JSON],
  ['a request of another protocol', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', NO_JSON],
  ['JSON that is no object', '[1]\n', NO_COMMAND],
  ['nothing', 'null\n', NO_COMMAND],
  ['a command that is no text', '{"command":1}\n', NO_COMMAND],
  ['bytes without an end', 'x'.repeat(70_000), '{"error":"a request has at most 65536 bytes"}\n'],
] as const) {
  test(`${what} gets an error line, and the next client an answer`, async () => {
    const dataDir = folder()
    await open(dataDir)
    const text = await tell(dataDir, bytes)
    assert.equal(Buffer.from(text, 'latin1').toString(), answer)
    assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
  })
}

test('a client that ends in the middle of a line gets an error line', async () => {
  const dataDir = folder()
  await open(dataDir)
  const peer = await dial(dataDir)
  peer.send('{"command"')
  peer.end()
  await peer.untilEnd()
  assert.equal(peer.text, NO_JSON)
})

test('a command learns that its client has left', async () => {
  const dataDir = folder()
  await open(dataDir)
  const peer = await dial(dataDir)
  peer.send('{"command":"wait"}\n')
  await peer.untilText('{"waiting":true}\n')
  peer.end()
  await peer.untilEnd()
  assert.equal(peer.text, '{"waiting":true}\n{"left":true}\n')
})

test('no more than 8 clients are served at a time; the next is told so, and served when there is room', async () => {
  const dataDir = folder()
  await open(dataDir)
  const waiting: Peer[] = []
  for (let count = 0; count < 8; count++) {
    const peer = await dial(dataDir)
    peer.send('{"command":"wait"}\n')
    await peer.untilText('waiting')
    waiting.push(peer)
  }
  assert.equal(await tell(dataDir, ''), '{"error":"busy: 8 commands are under way"}\n')
  waiting[0]!.end()
  await waiting[0]!.until('its end', peer => peer.isClosed)
  assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
})

test('a client that is turned away and leaves is let go, whatever it has sent', async () => {
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

/** Sockets of this kind that the process has, on either side. */
function openPipes(): number {
  return process.getActiveResourcesInfo().filter(kind => kind === 'PipeWrap').length
}

test('where somebody answers there already, there is no second socket, and the first stays', async () => {
  const dataDir = folder()
  await open(dataDir)
  const warnings: string[] = []
  assert.equal(await open(dataDir, warnings), null)
  assert.match(warnings[0]!, /another process answers there$/)
  assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
})

test('what a killed process left behind is replaced', async () => {
  const dataDir = folder()
  const code = `import { createServer } from 'node:net'
    createServer().listen(${JSON.stringify(controlPath(dataDir))}, () => console.log('here'))`
  const program = new Program(process.execPath, ['--input-type=module', '-e', code])
  await program.out.until(/here/)
  await program.kill()
  assert.ok(existsSync(controlPath(dataDir)))
  await open(dataDir)
  assert.match(await tell(dataDir, '{"command":"echo"}\n'), /^\{"request"/)
})

test('a file of that name is nobody’s to remove', async () => {
  const dataDir = folder()
  writeFileSync(controlPath(dataDir), 'mine')
  const warnings: string[] = []
  assert.equal(await open(dataDir, warnings), null)
  assert.match(warnings[0]!, /something else has that name$/)
  assert.ok(existsSync(controlPath(dataDir)))
})

test('a path that is too long for a socket is a warning, and no more', async () => {
  const warnings: string[] = []
  assert.equal(await open(join(root, 'x'.repeat(100)), warnings), null)
  assert.match(warnings[0]!, /^no control socket .*104 bytes or more; a shorter --data allows it$/)
})

test('the client says what is wrong where nobody answers', async () => {
  const nobody = folder()
  await assert.rejects(
    Control.connect(nobody),
    new CannotAsk(
      `no gateway runs with the data folder ${nobody}; start one, or name the one that runs with --home or --data`,
    ),
  )
  await assert.rejects(Control.connect(join(root, 'x'.repeat(100))), /the path of the control socket is too long/)
  const dataDir = folder()
  await open(dataDir)
  await assert.rejects(askOnce(dataDir, { command: 'refuse' }), new CannotAsk('not today'))
  assert.deepEqual(await askOnce(dataDir, { command: 'echo', text: 'ü\n' }), {
    request: { command: 'echo', text: 'ü\n' },
  })
})

test('the client says so when the gateway ends without an answer', async () => {
  const dataDir = folder()
  const server = createServer(socket => socket.end('{"half')).listen(controlPath(dataDir))
  await assert.rejects(askOnce(dataDir, { command: 'echo' }), /has ended the conversation/)
  server.close()
})

test('who waits for a command is not given up for being silent', async () => {
  const at = folder()
  const done = Promise.withResolvers<object>()
  const commands = { slow: () => done.promise }
  const socket = await ControlSocket.open(at, commands, cause => assert.fail(cause), 50)
  opened.push(socket!)
  const answer = askOnce(at, { command: 'slow' })
  const idle = await dial(at)
  // Its silence is over later than that of the other would be.
  await idle.untilEnd()
  done.resolve({ done: true })
  assert.deepEqual(await answer, { done: true })
})
