/** Mails of `[apim.notification]` to a real mail server, caused by requests to the REST APIs. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { ManagedApi } from '../../src/control/admin-api/admin-services.ts'
import { PlatformMails } from '../../src/control/platform-mails.ts'
import { bodyOf, fieldOf, MailServer } from '../harness/mail-server.ts'
import { startAdminApi } from './admin-api/running-admin-api.ts'
import { GUARD_MS } from '../harness/peers.ts'
import { KINDS, realDatabase } from './registry/real-databases.ts'

const PORTAL = '/api/am/devportal/v3'
const ADMIN = '/api/am/admin/v4'
const TENANT = 'carbon.super'
const EMAIL = 'http://wso2.org/claims/emailaddress'

const server = await MailServer.listen()
/** As `[apim.notification]`; a test replaces values as a reload does. */
const settings = {
  from_address: 'Sluice <sluice@example.com>',
  username: 'user',
  password: 'password',
  hostname: '127.0.0.1',
  port: server.port,
  enable_start_tls: false,
  enable_authentication: false,
}
const CONFIGURED = { ...settings }

type Body = Record<string, unknown>

after(() => server.close())

for (const kind of KINDS) {
  const database = await realDatabase(kind)
  describe(`mails of the platform in ${kind}`, { skip: typeof database === 'string' ? database : false }, () => {
    if (typeof database === 'string') return
    let admin: Awaited<ReturnType<typeof startAdminApi>>
    let mails: PlatformMails

    before(async () => {
      admin = await startAdminApi(database)
      const { registry, services, reports } = admin
      const administrator = (await registry.users.find('admin', TENANT))!
      await registry.users.update(administrator.id, { claims: { [EMAIL]: 'admin@example.com' } })
      for (const [name, claims] of [
        ['alice', { email: 'Alice <alice@example.com>' }],
        ['robert', {}],
        ['mallory', { email: 'm@example.com\r\nBcc: all@example.com' }],
      ] as const) {
        await registry.users.create(
          { name, tenant: TENANT, roles: ['Internal/subscriber'], claims },
          'a-password-of-theirs',
        )
      }
      mails = await PlatformMails.open({
        registry,
        settings: () => settings,
        apis: () => services.apis.list(),
        report: (level, event, fields) => void reports.push(`${level} ${event} ${JSON.stringify(fields)}`),
      })
      Object.assign(services, { notices: mails })
    })
    after(async () => {
      await mails.close()
      await admin.close()
      await database.remove()
    })
    beforeEach(async () => {
      Object.assign(settings, CONFIGURED)
      Object.assign(admin.approvals, { subscriptions: true, applications: true, keys: true })
      server.mails.length = 0
      server.refusal = () => ''
      admin.reports.length = 0
    })

    /** The outbox tells nobody of a change: it is asked. */
    async function eventually(what: string, holds: (counts: Body) => boolean): Promise<void> {
      const endsAt = performance.now() + GUARD_MS
      while (!holds((await mails.status()) as Body)) {
        if (performance.now() > endsAt) throw new Error(`waited in vain for ${what}`)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    }

    async function as(user: string, method: string, path: string, body?: Body) {
      const authorization = `Bearer ${await admin.tokenOf(user)}`
      return admin.fetch(method, path, { ...(body === undefined ? {} : { body }), authorization })
    }

    async function application(user: string): Promise<string> {
      const name = `Shop ${randomUUID()}`
      const { status } = await as(user, 'POST', `${PORTAL}/applications`, { name, throttlingPolicy: '10PerMin' })
      assert.equal(status, 201)
      return name
    }

    /** The request that waits for the application. */
    async function requestFor(name: string): Promise<string> {
      const { json } = await admin.fetch('GET', `${ADMIN}/workflows?limit=1000`)
      const all = json.list as unknown as { referenceId: string; properties: Body }[]
      return all.find(({ properties }) => properties.applicationName === name)!.referenceId
    }

    function decide(id: string, status: string) {
      const body = { status, attributes: {}, description: 'because, 因为' }
      return admin.fetch('POST', `${ADMIN}/workflows/update-workflow-status?workflowReferenceId=${id}`, { body })
    }

    async function userIdOf(name: string): Promise<string> {
      return (await admin.registry.users.find(name, TENANT))!.id
    }

    async function resetPassword(name: string, password: string): Promise<void> {
      const { status } = await admin.fetch('PUT', `/scim2/Users/${await userIdOf(name)}`, {
        body: { userName: name, password, claims: { email: `${name}@example.com` }, roles: [] },
      })
      assert.equal(status, 200)
    }

    test('an approval that is asked for: to the administrators; decided: to the requester', async () => {
      const name = await application('alice')
      const [asked] = await server.received(1)
      assert.deepEqual([asked!.from, asked!.to], ['sluice@example.com', ['admin@example.com']])
      assert.equal(fieldOf(asked!, 'From'), 'Sluice <sluice@example.com>')
      assert.equal(fieldOf(asked!, 'Subject'), `Approval requested: ${name}`)
      assert.match(bodyOf(asked!), new RegExp(`alice asks for the application ${name}`))
      const id = await requestFor(name)
      assert.equal((await decide(id, 'APPROVED')).status, 200)
      const [, decided] = await server.received(2)
      assert.deepEqual(decided!.to, ['alice@example.com'])
      assert.equal(fieldOf(decided!, 'Subject'), `Request approved: ${name}`)
      assert.match(bodyOf(decided!), /was approved\.\s+Reason: because, 因为/)
    })

    test('a decision that is repeated sends no second mail', async () => {
      const id = await requestFor(await application('alice'))
      for (const _ of [1, 2, 3]) assert.equal((await decide(id, 'REJECTED')).status, 200)
      await server.received(2)
      await eventually('no mail to wait', ({ waiting }) => waiting === 0)
      assert.deepEqual(server.mails.map(mail => fieldOf(mail, 'Subject').split(':')[0]).sort(), [
        'Approval requested',
        'Request rejected',
      ])
    })

    test('a password that an administrator resets: to the user, without the password', async () => {
      await resetPassword('alice', 's3cret-of-alice')
      const [mail] = await server.received(1)
      assert.deepEqual(mail!.to, ['alice@example.com'])
      assert.equal(fieldOf(mail!, 'Subject'), 'Your password was reset')
      assert.doesNotMatch(mail!.raw + bodyOf(mail!), /s3cret/)
    })

    test('a new version of an API: to the subscribers of other versions, once', async () => {
      Object.assign(admin.approvals, { subscriptions: false, applications: false })
      const { subscriptions, applications } = admin.registry
      for (const [owner, apiName, apiVersion] of [
        ['alice', 'Orders', '1.0.0'],
        ['alice', 'Orders', '1.1.0'],
        ['admin', 'Orders', '2.0.0'],
        ['admin', 'Drafts', '1.0.0'],
      ] as const) {
        const { id } = await applications.create({
          ...{ name: `App ${randomUUID()}`, owner, tenant: TENANT, description: '', tier: 'Unlimited' },
          ...{ attributes: {}, tokenType: 'JWT' },
        })
        await subscriptions.create({ applicationId: id, apiName, apiVersion, tier: 'Gold', status: 'ACTIVE' })
      }
      const apis = (await admin.services.apis.list()) as ManagedApi[]
      apis.push({ ...apis[0]!, version: '2.0.0' })
      mails.wake()
      const [mail] = await server.received(1)
      assert.deepEqual(mail!.to, ['alice@example.com'])
      assert.equal(fieldOf(mail!, 'Subject'), 'New version: Orders 2.0.0')
      await mails.apiPublished({ name: 'Orders', version: '2.0.0' })
      await eventually('no mail to wait', ({ waiting }) => waiting === 0)
      assert.equal(server.mails.length, 1)
    })

    test('a user without an address, or with one that is none, gets no mail: a log line says so', async () => {
      for (const name of ['robert', 'mallory']) {
        const id = await requestFor(await application(name))
        await decide(id, 'APPROVED')
        assert.ok(
          admin.reports.some(line => line.includes('no e-mail address') && line.includes(name)),
          name,
        )
      }
      await server.received(2)
      assert.ok(server.mails.every(({ to }) => to[0] === 'admin@example.com'))
    })

    test('a mail server that is down delays no request: its mail waits, and is sent later', async () => {
      const spare = await MailServer.listen()
      const { port } = spare
      await spare.close()
      settings.port = port
      await resetPassword('alice', 'another-password-1')
      await eventually('a mail to wait', ({ waiting }) => waiting === 1)
      const back = await MailServer.listen({}, port)
      const [mail] = await back.received(1)
      assert.equal(fieldOf(mail!, 'Subject'), 'Your password was reset')
      await back.close()
    })

    test('a login, and STARTTLS with a certificate that is not trusted: nothing leaves in plain text', async () => {
      const strict = await MailServer.listen({ authOptional: false, allowInsecureAuth: true })
      Object.assign(settings, { enable_authentication: true, port: strict.port, enable_start_tls: true })
      await resetPassword('alice', 'another-password-2')
      await eventually('a refused certificate', () => strict.connections > 0)
      assert.deepEqual([strict.mails, strict.logins], [[], []])
      settings.enable_start_tls = false
      const [mail] = await strict.received(1)
      assert.equal(mail!.user, 'user')
      await strict.close()
    })

    test('a mail that the server refuses for good is a dead letter, listed and sent again by command', async () => {
      server.refusal = () => '550 5.1.1 no such user'
      await resetPassword('alice', 'another-password-4')
      await eventually('a dead letter', ({ dead }) => dead === 1)
      const listed = (await admin.commands.run({ action: 'mail list' })) as { deadLetters: Body[] }
      const { to, subject, cause } = listed.deadLetters[0]!
      assert.deepEqual([to, subject], ['alice@example.com', 'Your password was reset'])
      assert.match(String(cause), /550 5\.1\.1 no such user/)
      server.refusal = () => ''
      assert.deepEqual(await admin.commands.run({ action: 'mail retry' }), { retried: 1 })
      await server.received(1)
    })

    test('without a mail server the commands say so, and operations go on', async () => {
      Object.assign(admin.services, { notices: null })
      await assert.rejects(admin.commands.run({ action: 'mail list' }), /apim\.notification/)
      await resetPassword('alice', 'another-password-5')
      Object.assign(admin.services, { notices: mails })
    })
  })
}
