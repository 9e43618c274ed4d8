/** TLS of the real program: first certificate, key stores, changing profiles, sessions over two reactors. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { check } from '../../src/cli/check.ts'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import { CA, CLIENT, EXPIRED, RSA_SERVER, SELF_SIGNED, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { eventually } from '../harness/peers.ts'
import { freePort, type Home, launch, type Program, type RunningGateway } from '../harness/program.ts'
import { connectSecured } from '../harness/secured-peers.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import { EC_JKS, MODERN_P12, RSA_JKS } from '../tls/fixtures/stores.ts'
import { takeResponse } from '../harness/responses.ts'

const failed: Program[] = []
after(async () => {
  await leave()
  for (const program of failed) await program.kill()
})

const HTTPS = 'transport.passthru_https.'
const ON = [`${HTTPS}listener.enable=true`, `${HTTPS}listener.parameters.port=0`, 'logging.level=info']
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
/** Pause between requests: this test is not about load. */
const PAUSE_MS = 3
const ANYBODY = { rejectUnauthorized: false }

async function portOf({ program }: RunningGateway): Promise<number> {
  const [, port] = await program.said.until(/^listening on https:\/\/\S*:(\d+)$/m)
  return Number(port)
}

/** The certificate of a new connection; checks that a request on it is served. */
async function shown(port: number, servername = 'localhost'): Promise<X509Certificate> {
  const { peer, tls } = await connectSecured(port, { servername, ...ANYBODY })
  const certificate = tls.getPeerX509Certificate()!
  peer.send(GET)
  assert.equal((await takeResponse(peer)).status, 200)
  peer.destroy()
  return certificate
}

function serialOf({ cert }: TlsIdentity): string {
  return new X509Certificate(cert).serialNumber
}

function put(at: Home, name: string, content: string | Buffer): void {
  const path = join(at.path, name)
  mkdirSync(join(path, '..'), { recursive: true })
  // Renamed into place, so that no half file exists.
  writeFileSync(`${path}.new`, content)
  renameSync(`${path}.new`, path)
}

test('the first start makes a certificate and logs it, the second one uses it again', async () => {
  const at = home(backend.port, 'new')
  const first = await start(at, ON)
  const certificate = await shown(await portOf(first))
  assert.match(certificate.subject, /localhost/)
  assert.equal(certificate.publicKey.asymmetricKeyType, 'ec')
  const file = join(at.data, 'listener.pem')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  await first.program.err.until(/self-signed certificate is in use, which no client trusts/)
  assert.doesNotMatch(first.program.err.text, /PRIVATE KEY/)
  first.program.signal('SIGTERM')
  assert.equal((await first.program.exited).code, 0)

  const before = readFileSync(file, 'utf8')
  const second = await start(at, ON)
  assert.equal((await shown(await portOf(second))).fingerprint256, certificate.fingerprint256)
  assert.equal(readFileSync(file, 'utf8'), before)
  second.program.signal('SIGTERM')
  assert.equal((await second.program.exited).code, 0)
})

const KEY_STORE = `${HTTPS}listener.key_store.`
const PEM = `${SERVER.cert}${SERVER.key}`

const STORES: readonly (readonly [host: string, type: string, content: string | Buffer, identity: TlsIdentity])[] = [
  ['ec.example.test', 'JKS', EC_JKS, SERVER],
  ['keys.example.test', 'PKCS12', MODERN_P12, SERVER],
  ['pem.example.test', 'PEM', `${VIRTUAL.cert}${VIRTUAL.key}`, VIRTUAL],
]

test('clients get the certificates of key stores in security/, of every type', async () => {
  const at = home()
  put(at, 'security/rsa.jks', RSA_JKS)
  for (const [host, , content] of STORES) put(at, `security/${host}`, content)
  const profiles = STORES.map(([host, type]) => profile(host, host, type, 'storepw'))
  put(at, 'profiles.xml', `<parameter name="SSLProfiles">${profiles.join('')}</parameter>`)
  const running = await start(at, [
    ...ON,
    `${KEY_STORE}file_name="rsa.jks"`,
    `${KEY_STORE}type="JKS"`,
    `${KEY_STORE}password="storepw"`,
    `${KEY_STORE}key_password="keypw"`,
    `${HTTPS}listener.ssl_profile.file_path="profiles.xml"`,
  ])
  const port = await portOf(running)
  assert.equal((await shown(port)).serialNumber, serialOf(RSA_SERVER))
  for (const [host, , , identity] of STORES)
    assert.equal((await shown(port, host)).serialNumber, serialOf(identity), host)
  assert.doesNotMatch(running.program.err.text + running.program.out.text, /storepw|keypw/)
  running.program.signal('SIGTERM')
  assert.equal((await running.program.exited).code, 0)
})

const WRONG: readonly (readonly [string, readonly string[], RegExp])[] = [
  [
    'the password of a JKS',
    ['ec.jks', 'JKS', 'hunter22', 'keypw'],
    /wrong password for .*ec\.jks.*key_store\.password/,
  ],
  [
    'the key password of a JKS',
    ['ec.jks', 'JKS', 'storepw', 'hunter22'],
    /wrong password for the key in .*ec\.jks.*key_store\.key_password/,
  ],
  [
    'the password of a PKCS12',
    ['keys.p12', 'PKCS12', 'hunter22', ''],
    /wrong password for .*keys\.p12.*key_store\.password/,
  ],
  ['type', ['keys.p12', 'JKS', 'hunter22', ''], /expected a JKS store, found a PKCS12 store.*key_store\.type/],
  ['name', ['none.p12', 'PKCS12', 'hunter22', ''], /cannot be read: there is no such file.*key_store\.file_name/],
]
for (const [i, [name, [file, type, password, keyPassword], message]] of WRONG.entries()) {
  test(`a wrong ${name} of a key store exits with 78, names store and key, and shows no secret`, async () => {
    const at = home()
    put(at, 'security/ec.jks', EC_JKS)
    put(at, 'security/keys.p12', MODERN_P12)
    const store = [`${KEY_STORE}file_name="${file}"`, `${KEY_STORE}type="${type}"`]
    const secrets = [`${KEY_STORE}password="${password}"`, `${KEY_STORE}key_password="${keyPassword}"`]
    const sets = [...ON, ...store, ...secrets]
    // A start fails with the first of them; check reports all.
    const said = new Transcript()
    assert.equal(await check(argumentsFor(at.path, { sets }), said), 78)
    assert.match(said.text.replaceAll('\n', ' '), message)
    assert.doesNotMatch(said.text, /hunter22|storepw|keypw/)
    if (i > 0) return
    const program = launch(at, sets)
    failed.push(program)
    assert.equal((await program.exited).code, 78)
    assert.match(program.err.text.replaceAll('\n', ' '), message)
    assert.doesNotMatch(program.err.text + program.out.text, /hunter22|storepw|keypw/)
  })
}

function profile(serverName: string, store: string, type: string, password: string): string {
  return `<profile><bindAddress>0.0.0.0</bindAddress><serverName>${serverName}</serverName><KeyStore>
    <Location>${store}</Location><Type>${type}</Type><Password>${password}</Password>
    <KeyPassword>${password}</KeyPassword></KeyStore></profile>`
}

function shop(store: string): string {
  return `<parameter name="SSLProfiles">${profile('shop.example.test', store, 'PEM', 'x')}</parameter>`
}

test('profiles and stores that change under load apply within the interval, and no request fails', async () => {
  const at = home()
  put(at, 'profiles.xml', shop('one.pem'))
  put(at, 'security/main.pem', PEM)
  put(at, 'security/one.pem', `${VIRTUAL.cert}${VIRTUAL.key}`)
  put(at, 'security/two.pem', `${SELF_SIGNED.cert}${SELF_SIGNED.key}`)
  const running = await start(at, [
    ...ON,
    `${KEY_STORE}file_name="main.pem"`,
    `${KEY_STORE}type="PEM"`,
    `${HTTPS}listener.ssl_profile.file_path="profiles.xml"`,
    `${HTTPS}listener.ssl_profile_interval=100`,
  ])
  const port = await portOf(running)
  let isOver = false
  let asked = 0
  const lasting = await Promise.all(Array.from({ length: 4 }, () => connectSecured(port, ANYBODY)))
  const load = Promise.all([
    ...lasting.map(async ({ peer }) => {
      for (; !isOver; asked++) {
        peer.send(GET)
        assert.equal((await takeResponse(peer)).status, 200)
        await sleep(PAUSE_MS)
      }
    }),
    (async () => {
      for (; !isOver; asked++) await shown(port).then(() => sleep(PAUSE_MS))
    })(),
  ])
  const untilShown = async (identity: TlsIdentity, name: string): Promise<void> => {
    for (let i = 0; (await shown(port, name)).serialNumber !== serialOf(identity); i++) {
      assert.ok(i < 3000, `${name} is never shown ${serialOf(identity)}`)
      await Promise.race([sleep(PAUSE_MS), load])
    }
  }
  const SHOP = 'shop.example.test'
  await untilShown(VIRTUAL, SHOP)
  put(at, 'profiles.xml', shop('two.pem'))
  await untilShown(SELF_SIGNED, SHOP)
  put(at, 'security/two.pem', `${CLIENT.cert}${CLIENT.key}`)
  await untilShown(CLIENT, SHOP)
  put(at, 'security/main.pem', `${EXPIRED.cert}${EXPIRED.key}`)
  await untilShown(EXPIRED, 'localhost')

  // A file with errors changes nothing.
  const before = running.program.err.text.length
  put(at, 'profiles.xml', '<parameter name="SSLProfiles"><profile>')
  put(at, 'security/main.pem', 'nonsense')
  const inForce = /the active TLS plans stay/
  await eventually('the line', () => inForce.test(running.program.err.text.slice(before)))
  assert.equal((await shown(port, SHOP)).serialNumber, serialOf(CLIENT))
  assert.equal((await shown(port)).serialNumber, serialOf(EXPIRED))

  put(at, 'security/main.pem', PEM)
  put(at, 'profiles.xml', shop('one.pem'))
  await untilShown(VIRTUAL, SHOP)
  await untilShown(SERVER, 'localhost')
  isOver = true
  await load
  assert.ok(asked > 20)
  for (const { peer } of lasting) {
    assert.equal(peer.ending, '')
    peer.destroy()
  }
  assert.doesNotMatch(running.program.err.text, /PRIVATE KEY|reactor replaced/)
})

test('SIGHUP reads the stores again where no interval is set', async () => {
  const at = home()
  put(at, 'security/main.pem', PEM)
  const sets = [`${KEY_STORE}file_name="main.pem"`, `${KEY_STORE}type="PEM"`]
  const running = await start(at, [
    ...ON,
    ...sets,
    `${HTTPS}listener.ssl_profile_interval=0`,
    `${HTTPS}sender.ssl_profile.interval=0`,
  ])
  const port = await portOf(running)
  const open = await connectSecured(port, ANYBODY)
  put(at, 'security/main.pem', `${SELF_SIGNED.cert}${SELF_SIGNED.key}`)
  assert.equal((await shown(port)).serialNumber, serialOf(SERVER))
  running.program.signal('SIGHUP')
  await running.program.err.until(/have changed and are active/)
  for (let i = 0; (await shown(port)).serialNumber !== serialOf(SELF_SIGNED); i++) assert.ok(i < 100)
  put(at, 'security/main.pem', 'nonsense')
  running.program.signal('SIGHUP')
  await running.program.err.until(/reload refused; nothing has changed/)
  assert.equal((await shown(port)).serialNumber, serialOf(SELF_SIGNED))
  open.peer.send(GET)
  assert.equal((await takeResponse(open.peer)).status, 200)
  open.peer.destroy()
})

test('any reactor resumes a session, of TLS 1.2 and 1.3', async () => {
  const at = home()
  const [plain, secured] = [await freePort(), await freePort()]
  const running = await start(at, [
    ...ON,
    'transport.passthru_http.reactors=2',
    `transport.passthru_http.listener.parameters.port=${plain}`,
    `${HTTPS}listener.parameters.port=${secured}`,
  ])
  const port = await portOf(running)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    let session: Buffer | undefined
    const reactors = new Set<string>()
    for (let i = 0; i < 20 || (reactors.size < 2 && i < 400); i++) {
      const options = session === undefined ? {} : { session }
      const { peer, tls } = await connectSecured(port, { ...ANYBODY, ...options, maxVersion: version })
      assert.equal(tls.isSessionReused(), session !== undefined, `connection ${i}`)
      // The session of TLS 1.2 comes before the handshake is complete.
      if (version === 'TLSv1.2') session ??= tls.getSession()
      else tls.on('session', it => (session = it))
      peer.send(GET)
      const { fields } = await takeResponse(peer)
      reactors.add(fields.get('activityid')![0]!.slice(0, 12))
      if (session === undefined) await eventually('a session', () => session !== undefined)
      peer.destroy()
    }
    assert.equal(reactors.size, 2, version)
  }
  running.program.signal('SIGTERM')
  assert.equal((await running.program.exited).code, 0)
})

test('client certificates are verified against a trust store of the home', async () => {
  const at = home()
  put(at, 'security/main.pem', PEM)
  put(at, 'security/ca.pem', CA.cert)
  const running = await start(at, [
    ...ON,
    `${KEY_STORE}file_name="main.pem"`,
    `${KEY_STORE}type="PEM"`,
    `${HTTPS}listener.trust_store.file_name="ca.pem"`,
    `${HTTPS}listener.trust_store.type="PEM"`,
    `${HTTPS}listener.parameters.SSLVerifyClient="require"`,
  ])
  const port = await portOf(running)
  const { peer } = await connectSecured(port, CLIENT)
  peer.send(GET)
  assert.equal((await takeResponse(peer)).status, 200)
  peer.destroy()
  const stranger = await connectSecured(port)
  stranger.peer.send(GET)
  await stranger.peer.until('the refusal', ({ ending, isClosed }) => ending !== '' || isClosed)
  assert.equal(stranger.peer.length, 0)
  await running.program.err.until(/TLS handshake failed/)
})
