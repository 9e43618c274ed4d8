/** `[apim.notification]` in the real program: mails that were stored survive SIGKILL and a mail server that is down. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bodyOf, fieldOf, MailServer } from '../harness/mail-server.ts'
import { home, leave, managed, start } from '../harness/operator.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

const at = home()
const mailPort = await freePort()
const managementPort = await freePort()
const SECTION = `[apim.notification]
from_address = "Sluice <sluice@example.com>"
username = "user"
password = "password"
hostname = "127.0.0.1"
port = ${mailPort}
[user_store.properties]
SCIMEnabled = true
`
let gateway: RunningGateway
let mailServer: MailServer | null = null

/** A version of the API Orders. */
function putOrders(version: string): void {
  const { endpointConfig } = JSON.parse(readFileSync(join(at.path, 'apis/Test/api.yaml'), 'utf8')).data
  const data = { name: 'Orders', version, context: '/orders', policies: ['Gold'], endpointConfig }
  put(at, `apis/Orders-${version}/api.yaml`, JSON.stringify({ type: 'api', version: 'v4.0.0', data }))
}

async function launched(): Promise<RunningGateway> {
  return start(at, ['management.enable=true', `management.port=${managementPort}`])
}

before(async () => {
  putOrders('1.0.0')
  put(at, 'deployment.toml', SECTION)
  gateway = await launched()
})
after(async () => {
  await mailServer?.close()
  await leave()
})

async function said(command: string): Promise<string> {
  return managed(at, ...command.split(' '))
}

/** A request of the super admin to SCIM. */
async function scim(method: string, path: string, body: object): Promise<{ readonly id: string }> {
  const password = readFileSync(join(at.data, 'admin-password'), 'utf8').trim()
  const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly id: string }>()
  const sent = request({
    ...{
      host: '127.0.0.1',
      servername: 'localhost',
      port: managementPort,
      agent: false,
      method,
      path: `/scim2${path}`,
    },
    ca: readFileSync(join(at.data, 'listener.pem')),
    headers: { authorization, 'content-type': 'application/json', host: `localhost:${managementPort}` },
  })
  sent.on('response', async response => {
    const text = (await response.toArray()).join('')
    if (response.statusCode! < 300) resolve(JSON.parse(text))
    else reject(new Error(`${response.statusCode} ${text}`))
  })
  sent.on('error', reject).end(JSON.stringify(body))
  return promise
}

test('mails wait for the mail server across SIGKILL, and come once with their Message-IDs', async () => {
  const alice = {
    ...{ userName: 'alice', password: 'a-password-of-hers', roles: [{ value: 'Internal/subscriber' }] },
    claims: { 'http://wso2.org/claims/emailaddress': 'alice@example.com' },
  }
  const { id } = await scim('POST', '/Users', alice)
  await scim('PUT', `/Users/${id}`, { ...alice, password: 's3cret-of-alice' })
  assert.match(await said('mail list'), /waiting +1\n/)
  gateway.program.signal('SIGKILL')
  await gateway.program.exited
  gateway = await launched()
  mailServer = await MailServer.listen({}, mailPort)
  const [mail] = await mailServer.received(1)
  assert.deepEqual([mail!.from, mail!.to], ['sluice@example.com', ['alice@example.com']])
  assert.equal(fieldOf(mail!, 'Subject'), 'Your password was reset')
  assert.match(fieldOf(mail!, 'Message-ID'), /^<[0-9a-f-]{36}@example\.com>$/)
  assert.doesNotMatch(mail!.raw + bodyOf(mail!), /s3cret/)
})

test('a version that a reload brings: to the owner of an application with another version', async () => {
  await said('application create Shop --owner alice')
  await said('subscription add Shop Orders:1.0.0 --owner alice')
  putOrders('2.0.0')
  await reload(gateway)
  const [, mail] = await mailServer!.received(2)
  assert.deepEqual(mail!.to, ['alice@example.com'])
  assert.equal(fieldOf(mail!, 'Subject'), 'New version: Orders 2.0.0')
  assert.equal(mailServer!.mails.length, 2)
  const delivered = /^sluice_delivery_events_total\{channel="platform",event="delivered"\} 2$/m
  const stored = /^sluice_deliveries\{channel="platform",state="delivered"\} 2$/m
  for (const pattern of [delivered, stored]) while (!pattern.test(await metrics())) await sleep(20)
})

async function metrics(): Promise<string> {
  return (await fetch(`http://127.0.0.1:${gateway.healthPort}/metrics`)).text()
}
