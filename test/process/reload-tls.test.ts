/** Reloads of TLS: other key stores, the first TLS backend, other trusted authorities. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, test, type TestContext } from 'node:test'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import { takeResponse } from '../harness/responses.ts'
import { CA, OTHER_CA, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'
import { dial, home, leave, sluice, start } from '../harness/operator.ts'
import type { Peer } from '../harness/peers.ts'
import type { RunningGateway } from '../harness/program.ts'
import { put, putApi, reload } from '../harness/reloading.ts'
import { connectSecured, SecuredBackend } from '../harness/secured-peers.ts'

after(leave)

const LISTENS = ['transport.passthru_https.listener.enable=true', 'transport.passthru_https.listener.parameters.port=0']
const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n'
const SECTION = '[transport.passthru_https]\n'

function store(side: string, file: string): string {
  return `"${side}.file_name" = "${file}"\n"${side}.type" = "PEM"\n`
}

async function statusOf(client: Peer): Promise<number> {
  client.send(GET)
  return (await takeResponse(client)).status
}

async function portOf({ program }: RunningGateway): Promise<number> {
  const [, port] = await program.said.until(/^listening on https:\/\/\S*:(\d+)$/m)
  return Number(port)
}

/** Serial number of the certificate that a new connection gets. */
async function shown(port: number): Promise<string> {
  const { peer, tls } = await connectSecured(port, { rejectUnauthorized: false })
  const { serialNumber } = tls.getPeerX509Certificate()!
  peer.destroy()
  return serialNumber
}

function serialOf({ cert }: TlsIdentity): string {
  return new X509Certificate(cert).serialNumber
}

/** A TLS backend that responds `ok`. */
async function securedBackend(t: TestContext): Promise<string> {
  const backend = await SecuredBackend.listen({}, peer => void answerAll(peer))
  t.after(() => backend.close())
  return `https://localhost:${backend.port}`
}

async function answerAll(peer: Peer): Promise<void> {
  for (;;) {
    await peer.untilRequest()
    if (peer.take() === '') return
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  }
}

test('other key stores apply at once or not at all, and open connections go on', async () => {
  const at = home()
  put(at, 'security/one.pem', SERVER.key + SERVER.cert)
  put(at, 'security/two.pem', VIRTUAL.key + VIRTUAL.cert)
  put(at, 'deployment.toml', SECTION + store('listener.key_store', 'one.pem'))
  const gateway = await start(at, LISTENS)
  const port = await portOf(gateway)
  const open = await connectSecured(port)
  put(at, 'deployment.toml', SECTION + store('listener.key_store', 'two.pem'))
  const { outcome, keys } = await reload(gateway)
  assert.deepEqual([outcome, keys.map(({ wanted }) => wanted)], ['applied', ['two.pem']])
  assert.equal(await shown(port), serialOf(VIRTUAL))

  put(at, 'deployment.toml', `${SECTION}${store('listener.key_store', 'three.pem')}[logging]\nlevel = "debug"\n`)
  const { code, out } = await sluice(at, 'reload')
  assert.equal(code, 78)
  assert.match(out, /^error +\S*three\.pem.*listener\.key_store\.file_name: cannot be read: there is no such file/m)
  assert.equal(await shown(port), serialOf(VIRTUAL))

  // Without a store the reload makes a self-signed certificate.
  put(at, 'deployment.toml', '')
  assert.equal((await reload(gateway)).outcome, 'applied')
  assert.ok(![serialOf(SERVER), serialOf(VIRTUAL)].includes(await shown(port)))
  assert.equal(await statusOf(open.peer), 200)
  open.peer.destroy()
})

test('a reload brings the first TLS backend, and TLS goes with the last one', async t => {
  const plain = await UnreliableBackend.start('plain')
  t.after(() => plain.stop())
  const url = await securedBackend(t)
  const gateway = await start()
  const at = gateway.home
  put(at, 'security/ca.pem', CA.cert)
  put(at, 'deployment.toml', SECTION + store('sender.trust_store', 'ca.pem'))
  const client = await dial(gateway)
  for (let i = 0; i < 2; i++) {
    putApi(at, 'Test', 't', url)
    assert.deepEqual((await reload(gateway)).failures, [])
    assert.equal(await statusOf(client), 200)
    putApi(at, 'Test', 't', `http://127.0.0.1:${plain.port}`)
    assert.deepEqual((await reload(gateway)).failures, [])
    assert.equal(await statusOf(client), 200)
  }
  assert.equal(plain.requests.length, 2)
})

test('an unreadable trust store for the first TLS backend refuses the reload', async t => {
  const gateway = await start()
  const at = gateway.home
  putApi(at, 'Test', 't', await securedBackend(t))
  put(at, 'deployment.toml', SECTION + store('sender.trust_store', 'ca.pem'))
  const { outcome, errors } = await reload(gateway)
  assert.deepEqual(
    [outcome, errors.map(({ key }) => key)],
    ['refused', ['transport.passthru_https.sender.trust_store.file_name']],
  )
  assert.equal(await statusOf(await dial(gateway)), 200)
})

test('the authorities that may sign backends are live', async t => {
  const gateway = await start()
  const at = gateway.home
  putApi(at, 'Test', 't', await securedBackend(t))
  put(at, 'security/other.pem', OTHER_CA.cert)
  put(at, 'security/ca.pem', CA.cert)
  put(at, 'deployment.toml', SECTION + store('sender.trust_store', 'other.pem'))
  await reload(gateway)
  const client = await dial(gateway)
  assert.equal(await statusOf(client), 502)
  await sluice(at, 'endpoints', 'on', 't/1.0.0')
  put(at, 'deployment.toml', SECTION + store('sender.trust_store', 'ca.pem'))
  await reload(gateway)
  assert.equal(await statusOf(await dial(gateway)), 200)
})
