import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { type Certificate, createCertificate } from '../../bench/certificate.ts'
import { drive } from '../../bench/load/drive.ts'
import type { LoadPlan } from '../../bench/load/load-plan.ts'
import { driveHandshakes } from '../../bench/load/tls-handshakes.ts'
import { findExecutable } from '../../bench/program.ts'
import { verify } from '../../bench/verify.ts'

const skip = findExecutable('openssl') === undefined ? 'openssl is not installed' : false

let folder = ''
let server: Server
let certificate: Certificate
let port = 0
const seen = new Set<string>()
let handshakes = 0
let resumed = 0

before(async () => {
  if (skip !== false) return
  folder = mkdtempSync(join(tmpdir(), 'handshakes-'))
  certificate = createCertificate(folder)!
  const { chainFile, keyFile } = certificate
  server = createServer({ cert: readFileSync(chainFile), key: readFileSync(keyFile) }, (_request, response) => {
    response.writeHead(200, { 'Content-Length': 1024, 'Content-Type': 'text/plain' }).end(Buffer.alloc(1024, 'x'))
  })
  server.on('secureConnection', (socket: TLSSocket) => {
    handshakes++
    if (socket.isSessionReused()) resumed++
    seen.add(`${socket.getProtocol()} ${socket.getCipher().name}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})

after(() => {
  server?.close()
  if (folder !== '') rmSync(folder, { recursive: true, force: true })
})

function getPlan(connectionPerRequest: boolean): LoadPlan {
  const message = { uploadBytes: 0, downloadBytes: 1024, connectionPerRequest }
  return { port, certificate, path: '/', connections: 2, seconds: 1, ...message, ratePerSecond: 0, warmUpSeconds: 0 }
}

for (const wanted of [false, true]) {
  test(wanted ? 'each handshake but the first resumes a session' : 'no handshake resumes a session', {
    skip,
  }, async () => {
    handshakes = 0
    resumed = 0
    const { environment } = certificate
    const plan = { port, path: '/', clients: 1, seconds: 1, downloadBytes: 1024, resumed: wanted, environment }
    const { requests, errors } = await driveHandshakes(plan)
    assert.ok(requests > 0)
    assert.equal(errors, 0)
    assert.equal(resumed, wanted ? handshakes - 1 : 0)
  })
}

test('every client offers only one TLS version and cipher suite', { skip }, async () => {
  await drive(getPlan(false), folder)
  await verify(getPlan(true))
  assert.deepEqual([...seen], ['TLSv1.3 TLS_AES_256_GCM_SHA384'])
})

test('a server with another certificate is rejected', { skip }, async () => {
  const other = createCertificate(join(folder, 'other'))!
  await assert.rejects(verify({ ...getPlan(false), certificate: other }), /self-signed/)
})
