/** Issuers and key managers that are silent, down or send garbage: 900900, and other requests go on. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, test } from 'node:test'
import { SignJWT } from 'jose'
import { sendRequest } from '../harness/filter-chain.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { put } from '../harness/reloading.ts'
import { json, MisbehavingServer } from '../control/remote/misbehaving-server.ts'

/** The longest that a client waits. */
const BOUND_MS = 6000
const NO_SUBSCRIPTION = 900908
const NOT_KNOWN = 900900

const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
const keySet = json({ keys: [{ ...RSA.publicKey.export({ format: 'jwk' }), kid: 'a' }] })
const others = await MisbehavingServer.listen()
others.answer = (response, request) => {
  if (request.url === '/good') keySet(response, request)
  else if (request.url === '/garbage') json('<html>', 200, 'text/html')(response, request)
  else if (request.url === '/oauth2/introspect') json({ active: 'yes' })(response, request)
  // Every other request gets no response.
}
const at = home()
const endpointConfig = {
  endpoint_type: 'http',
  production_endpoints: { url: `http://127.0.0.1:${backend.port}` },
}
put(
  at,
  'apis/Closed/api.yaml',
  openProject({ name: 'Closed', context: '/c', endpointConfig, securityScheme: ['oauth2'] }),
)
const issuer = (name: string, url: string) => `[[apim.jwt.issuer]]\nname = "${name}"\njwks.url = "${url}"\n`
const issuers = ['good', 'garbage', 'silent'].map(name => issuer(name, `${others.origin}/${name}`))
put(
  at,
  'deployment.toml',
  `[server]\nserver_role = "gateway-worker"\n[apim.key_manager]\nservice_url = "${others.origin}/services/"
${[...issuers, issuer('down', 'http://127.0.0.1:1/')].join('')}`,
)
const gateway = await start(at)
after(async () => {
  others.close()
  await leave()
})

function tokenOf(iss: string): Promise<string> {
  const claims = { iss, sub: 'anna', azp: 'key', exp: Math.floor(Date.now() / 1000) + 3600 }
  return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'a' }).sign(RSA.privateKey)
}

async function codeOf(path: string, token: string): Promise<number> {
  const client = await connectPeer(gateway.port)
  const { body } = await sendRequest(client, `GET ${path}/1.0.0/`, `Authorization: Bearer ${token}\r\n`)
  client.destroy()
  return body === 'ok' ? 0 : (JSON.parse(body).fault.code as number)
}

test('an issuer that is silent, down or sends garbage is 900900 in time, and delays no other request', async () => {
  const begun = performance.now()
  const waiting = tokenOf('silent').then(token => codeOf('/c', token))
  assert.equal(await codeOf('/t', ''), 0)
  assert.equal(await codeOf('/c', await tokenOf('good')), NO_SUBSCRIPTION)
  assert.equal(await codeOf('/c', await tokenOf('garbage')), NOT_KNOWN)
  assert.equal(await codeOf('/c', await tokenOf('down')), NOT_KNOWN)
  assert.equal(await codeOf('/c', 'opaque'), NOT_KNOWN)
  assert.ok(performance.now() - begun < 2000)
  assert.equal(await waiting, NOT_KNOWN)
  assert.ok(performance.now() - begun < BOUND_MS)
})

test('an unknown key costs its issuer one request, however many tokens name it', async () => {
  const { length } = others.received.filter(({ path }) => path === '/good')
  const unknown = (kid: string) =>
    new SignJWT({ iss: 'good', sub: 'a', azp: 'b', exp: 4_000_000_000 })
      .setProtectedHeader({ alg: 'RS256', kid })
      .sign(RSA.privateKey)
  const tokens = await Promise.all(Array.from({ length: 30 }, (_, i) => unknown(`k${i}`)))
  const codes = await Promise.all(tokens.map(token => codeOf('/c', token)))
  assert.deepEqual(new Set(codes), new Set([900901]))
  const asked = others.received.filter(({ path }) => path === '/good').length - length
  assert.ok(asked <= 1, `${asked} requests`)
})
