/** Forward proxies of the configuration in the real program, and settings that are refused. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { CA, SERVER } from '../harness/certificates.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { ScriptedBackend } from '../harness/peers.ts'
import { ask, type Home, launch, LAUNCHER, makeHome, Program, startProgram } from '../harness/program.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'
const USER = 'proxy_username = "gateway"\nproxy_password = "secret"\n'
const BASIC = `Basic ${btoa('gateway:secret')}`

function homeFor(t: TestContext, deployment: string, url: string): Home {
  const home = makeHome(1, deployment)
  t.after(() => home.remove())
  const api = join(home.path, 'apis', 'Test', 'api.yaml')
  writeFileSync(api, readFileSync(api, 'utf8').replace('http://127.0.0.1:1', url))
  return home
}

test('a plain backend is reached through the profile of its host', async t => {
  const proxy = await ScriptedBackend.listen(peer => void peer.untilText('\r\n\r\n').then(() => peer.send(OK)))
  t.after(() => proxy.close())
  const rows = `[[transport.http.proxy_profile]]
target_hosts = ["*.example"]
proxy_host = "127.0.0.1"
proxy_port = ${proxy.port}
${USER}`
  const { program, port } = await startProgram(homeFor(t, rows, 'http://backend.example:8080/base'))
  t.after(() => program.kill())
  assert.match(await ask(port, 'GET', '/t/it?a=b'), /^HTTP\/1\.1 200 OK\r\n.*ok$/s)
  const { text } = await proxy.next()
  assert.match(text, /^GET http:\/\/backend\.example:8080\/base\/it\?a=b HTTP\/1\.1\r\nHost: backend\.example:8080\r\n/)
  assert.ok(text.includes(`\r\nProxy-Authorization: ${BASIC}\r\n`))
})

test('a backend on TLS is reached through the profile in XML of the secured transport', async t => {
  const backend = createServer({ key: SERVER.key, cert: SERVER.cert }, (_, response) => response.end('ok'))
  backend.listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => {
    proxy.close()
    backend.close()
    backend.closeAllConnections()
  })
  const { port: backendPort } = backend.address() as AddressInfo
  const profile = `<profile><targetHosts>*</targetHosts>
<proxyHost>127.0.0.1</proxyHost><proxyPort>${proxy.port}</proxyPort>
<proxyUserName>gateway</proxyUserName><proxyPassword>secret</proxyPassword></profile>`
  const deployment = `[transport.passthru_https]
sender.proxyProfiles = '''${profile}'''
sender.trust_store.file_name = "ca.pem"
sender.trust_store.type = "PEM"
`
  const home = homeFor(t, deployment, `https://localhost:${backendPort}`)
  writeFileSync(join(home.path, 'ca.pem'), CA.cert)
  const { program, port } = await startProgram(home)
  t.after(() => program.kill())
  assert.match(await ask(port, 'GET', '/t/it'), /^HTTP\/1\.1 200 OK\r\n.*ok$/s)
  assert.match(proxy.heads[0]!, new RegExp(`^CONNECT localhost:${backendPort} HTTP/1.1\r\n`))
  assert.ok(!program.err.text.includes('secret'))
})

test('invalid proxy settings are errors: exit 78 at a start, and under check', async t => {
  const rows = `[[transport.http.secured_proxy_profile]]
target_hosts = ["http://a.example"]
proxy_host = "127.0.0.1"
proxy_port = 3128
`
  const home = homeFor(t, rows, 'http://127.0.0.1:1')
  const fault = 'transport.http.secured_proxy_profile[0].target_hosts = http://a.example: expected host names'
  const started = launch(home, [])
  assert.equal((await started.exited).code, 78)
  assert.ok(started.err.text.includes(fault), started.err.text)
  const checked = new Program(process.execPath, [LAUNCHER, 'check', '--home', home.path])
  assert.equal((await checked.exited).code, 78)
  assert.ok(checked.out.text.includes(`deployment.toml:2: ${fault}`), checked.out.text)
})

test('a backend in two profiles is a warning at a start', async t => {
  const row = `[[transport.http.proxy_profile]]
target_hosts = ["a.example"]
proxy_host = "127.0.0.1"
proxy_port = 3128
`
  const { program } = await startProgram(homeFor(t, row + row, 'http://127.0.0.1:1'))
  t.after(() => program.kill())
  await program.err.until(
    /proxy_profile\[1\]\.target_hosts = a\.example: is already in transport\.http\.proxy_profile\[0\]/,
  )
})
