/** Fields that name the caller: the gateway strips them from every request, so that a backend can trust its own. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { StrictBackend } from '../harness/strict-backend.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await StrictBackend.listen()
const gateway = await startGateway([{ context: '/t', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})

const NAMES = [
  'X-JWT-Assertion',
  'X-WSO2-CLIENT-CERTIFICATE',
  'X-Client-Cert',
  'X-SSL-Client-Cert',
  'SSL-Client-Cert',
  'X-SSL-CERT',
  'X-Forwarded-Client-Cert',
  'Client-Cert',
  'Client-Cert-Chain',
  'x_jwt_assertion',
  'X-SSL_client-CERT',
]

/** Sends a request; returns the fields and trailers that the backend gets, in lower case. */
async function forwardedLines(head: string): Promise<string> {
  const peer = await connectPeer(gateway.port)
  peer.send(head)
  await peer.untilText('\r\n\r\nok')
  peer.destroy()
  const { lines, trailers } = backend.requests.at(-1)!
  return [...lines, ...trailers].join('\n').toLowerCase()
}

for (const name of NAMES) {
  test(`${name} of a client is stripped from fields and trailers, also when repeated`, async () => {
    const twice = `${name}: forged\r\nX-Other: it\r\n${name.toUpperCase()}: forged\r\n`
    const lines = await forwardedLines(`GET /t/a HTTP/1.1\r\nHost: a\r\n${twice}\r\n`)
    assert.match(lines, /x-other/)
    assert.doesNotMatch(lines, /forged/)
    const chunked = `Transfer-Encoding: chunked\r\nTE: trailers\r\n\r\n0\r\nX-Late: it\r\n${name}: forged\r\n\r\n`
    const chunkedLines = await forwardedLines(`POST /t/a HTTP/1.1\r\nHost: a\r\n${chunked}`)
    assert.match(chunkedLines, /x-late/)
    assert.doesNotMatch(chunkedLines, /forged/)
  })
}

test('a reload of [apim.jwt] strips the configured field name as well as the default one', async () => {
  const request = 'GET /t/a HTTP/1.1\r\nHost: a\r\nX-Caller_Token: one\r\nX-JWT-Assertion: two\r\n\r\n'
  assert.match(await forwardedLines(request), /: one/)
  const { auth } = planGateway([]).plan
  await gateway.deploy({ auth: { ...auth, backendJwt: { ...auth.backendJwt, field: 'X-Caller-Token' } } })
  assert.doesNotMatch(await forwardedLines(request), /: one|: two/)
})

test('fields with similar names are forwarded', async () => {
  const request = 'GET /t/a HTTP/1.1\r\nHost: a\r\nX-JWT-Assertion2: a\r\nClient-Certs: b\r\nX-SSL: c\r\n\r\n'
  assert.match(await forwardedLines(request), /x-jwt-assertion2: a\nclient-certs: b\nx-ssl: c/)
})
