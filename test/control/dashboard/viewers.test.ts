/** Viewers on real connections to the management listener: those that never read, and those that go away. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { openDashboard } from '../../../src/control/dashboard/dashboard-app.ts'
import { VIEWERS_MAX } from '../../../src/control/dashboard/feed.ts'
import { ManagementListener } from '../../../src/control/management-listener.ts'
import type { ManagementPlan } from '../../../src/plan/management-plan.ts'
import { CA, SERVER } from '../../harness/certificates.ts'
import { eventually } from '../../harness/peers.ts'
import { ADMIN_PASSWORD, startKeyManager } from '../oauth/running-key-manager.ts'

const ROUND_BYTES = 128 * 1024
let roundBytes = ROUND_BYTES
const ROUNDS = 300
/** The queue of a viewer and the buffers of a connection on this machine. */
const WAITING_BYTES_MAX = 14 * 1024 * 1024
const MUTE = 10
const LAST_CHUNK = '0\r\n\r\n'
const LOOKS_MAX = 100

const running = await startKeyManager()
let round = 0
const dashboard = openDashboard({
  manager: running.manager,
  isOpen: () => true,
  roles: () => ['admin'],
  files: new Map(),
  gather: async () => ({ live: { round: ++round, text: String(round).padEnd(roundBytes, 'x') } }),
  configuration: async () => [],
  roundMs: 5,
})
const PLAN: ManagementPlan = {
  ...{ host: '127.0.0.1', port: 0, connectionsMax: 256, origin: running.origin, hostNames: [] },
  tls: { identity: SERVER, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' },
  ...{ console: { networks: [] }, web: { networks: [] }, filters: [] },
}
const mounted = { paths: ['/dashboard'], area: 'console' as const, fetch: dashboard.fetch }
const listener = await ManagementListener.open(PLAN, { apps: async () => [mounted], events: { report: () => {} } })
after(async () => {
  dashboard.close()
  await listener.close()
  await running[Symbol.asyncDispose]()
})

async function signIn(): Promise<string> {
  const ask = (init: RequestInit) =>
    dashboard.fetch(new Request(`${running.origin}/dashboard/sign-in`, init), { clientAddress: '127.0.0.1' })
  const shown = await ask({})
  const [form = ''] = shown.headers.getSetCookie()[0]!.split(';')
  const [, token = ''] = /name="form_token" value="([^"]+)"/.exec(await shown.text())!
  const body = new URLSearchParams({ username: 'admin', password: ADMIN_PASSWORD, form_token: token, request: '' })
  const answer = await ask({ method: 'POST', body, headers: { cookie: form } })
  return answer.headers
    .getSetCookie()
    .find(line => line.startsWith('__Host-dashboard='))!
    .split(';')[0]!
}

/** Asks for the events, and reads nothing yet. */
async function view(cookie: string): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', servername: 'localhost', port: listener.port, ca: CA.cert })
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  socket.write(`GET /dashboard/events HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`)
  return socket
}

test('viewers that never read cost a bounded queue, lose their places, and hold nobody up', async () => {
  const cookie = await signIn()
  const mute = await Promise.all(Array.from({ length: MUTE }, () => view(cookie)))
  const reader = await view(cookie)
  const begun = round
  let bytes = 0
  reader.on('data', (piece: Buffer) => (bytes += piece.length))
  await eventually('the rounds', () => round - begun >= ROUNDS && bytes >= (ROUNDS / 2) * ROUND_BYTES)
  for (const socket of mute) {
    let received = 0
    let end = ''
    socket.on('data', (piece: Buffer) => {
      received += piece.length
      end = (end + piece.toString('latin1')).slice(-LAST_CHUNK.length)
    })
    await eventually('the end of the response', () => end === LAST_CHUNK)
    assert.ok(received < WAITING_BYTES_MAX, `${received} bytes waited`)
    socket.destroy()
  }
  reader.destroy()
})

/** Opens a stream; while there is no room, again and again. */
async function served(cookie: string): Promise<TLSSocket> {
  for (;;) {
    const socket = await view(cookie)
    const [head] = (await once(socket, 'data')) as [Buffer]
    if (head.toString('latin1').startsWith('HTTP/1.1 200 ')) return socket
    socket.destroy()
  }
}

test('viewers whose connections are lost give up their places, and without any nothing is gathered', async () => {
  roundBytes = 100
  const cookie = await signIn()
  for (let each = 0; each < 2; each++) {
    const sockets = await Promise.all(Array.from({ length: VIEWERS_MAX }, () => served(cookie)))
    for (const socket of sockets) socket.destroy()
  }
  let before = -1
  for (let looks = 0; looks < LOOKS_MAX && before !== round; looks++) {
    before = round
    await sleep(100)
  }
  assert.equal(before, round, 'rounds go on without a viewer')
})
