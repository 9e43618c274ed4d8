/** The outbox on each database: acceptance, limits, keys, pages, dead letters, retention. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SecretBox, SecretCipher } from '../../src/database/secret-cipher.ts'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import type { AcceptOrder, Delivery, SenderId } from '../../src/delivery/delivery.ts'
import type { Outbox } from '../../src/delivery/outbox.ts'
import {
  acceptAll,
  type Clause,
  DELIVERED,
  describeClauses,
  MAIL,
  numbered,
  type OutboxFixture,
  readCountsOf,
  readState,
  runDue,
  runOf,
  SMS,
  TENANT,
  TestClock,
} from './outbox-databases.ts'

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['an event is stored as it is, in its order', storesEvents],
  ['a key with the same event returns the first ids, with another event it is refused', repeatsKeys],
  ['a key with the same content returns the first deliveries, whatever the senders are now', keepsSenders],
  ['with a cipher events are encrypted, each for its sender; another key reads and sends none', encrypts],
  ['orders that find too many waiting for the database are refused, and counted later', countsBusy],
  ['twenty orders with one key from two nodes at a time store one event', storesOnce],
  ['an order beyond a limit is refused as a whole, and counted', refusesBeyondLimits],
  ['events of one tenant beyond its limit are refused and counted, those of another one are not', keepsTenantsApart],
  ['a delivery of another tenant than its order is a bug', refusesOtherTenants],
  ['pages show the deliveries of one tenant by sender and state, newest first, each once', listsPages],
  ['dead letters are replayed without attempts, as many as the limit of waiting events allows', replays],
  ['dead letters are dropped, and others are not', drops],
  ['what waits for a deleted sender becomes dead letters', orphans],
  ['the platform and the tenants have limits, keys and retention of their own', keepsAreasApart],
  ['retention removes what is too old and too much, but nothing by age after the clock has jumped', expires],
]

describeClauses('the outbox in', CLAUSES)

function order(text: string, key: string | null = null, tenant = TENANT): AcceptOrder {
  return { tenant, key, deliveries: [{ sender: { ...SMS, tenant }, event: JSON.stringify({ text }) }] }
}

async function storesEvents({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const outbox = await open({ clock })
  const texts = ['plain', 'quotes "\'`', 'lines\r\n\ttab', '😀 ☃ \u{1f1f3}\u{1f1f4}', 'backslash \\ %_$', '']
  const ids = await acceptAll(outbox, texts)
  for (const [index, id] of ids.entries()) {
    const { event, ...delivery } = (await outbox.get(TENANT, id))!
    assert.deepEqual(JSON.parse(event), { text: texts[index] })
    const times = { acceptedMs: clock.ms, atMs: clock.ms }
    assert.deepEqual(delivery, { id, sender: SMS, state: 'waiting', attempts: 0, cause: '', ...times })
    assert.equal(await outbox.get('other.com', id), undefined)
  }
  assert.deepEqual(await readCountsOf(outbox), { waiting: 6, acceptedTotal: 6 })
}

async function repeatsKeys({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const first = await outbox.accept(order('one', 'key'))
  assert.ok(first.kind === 'accepted' && !first.isRepeated)
  assert.deepEqual(await outbox.accept(order('one', 'key')), { ...first, isRepeated: true })
  const refusal = { kind: 'refused', reason: 'key-reused', limit: 0 }
  assert.deepEqual(await outbox.accept(order('two', 'key')), refusal)
  const others = await Promise.all([
    outbox.accept(order('two', 'key', 'other.com')),
    outbox.accept(order('two', 'Key')),
    outbox.accept(order('two', 'key ')),
    outbox.accept(order('two')),
  ])
  assert.deepEqual(new Set(others.map(other => other.kind === 'accepted' && other.isRepeated)), new Set([false]))
  assert.equal((await readCountsOf(outbox)).waiting, 4)
}

async function keepsSenders({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const of = (text: string, ...senders: readonly SenderId[]): AcceptOrder => ({
    ...{ tenant: TENANT, key: 'key', content: text },
    deliveries: senders.map(sender => ({ sender, event: JSON.stringify({ text }) })),
  })
  const first = await outbox.accept(of('one', SMS, MAIL))
  assert.ok(first.kind === 'accepted')
  assert.deepEqual(first.senders, [SMS, MAIL])
  const another = await open()
  for (const senders of [[SMS], [MAIL], [SMS, MAIL, { ...SMS, name: 'third' }]]) {
    assert.deepEqual(await another.accept(of('one', ...senders)), { ...first, isRepeated: true })
  }
  assert.equal((await outbox.accept(of('two', SMS, MAIL))).kind, 'refused')
}

function boxOf(secret: string): SecretBox {
  return new SecretBox({ ciphers: [new SecretCipher(secret)], source: '' })
}

test('the digest of a text depends on the key', () => {
  const [one, other] = [boxOf('one'), boxOf('other')]
  assert.equal(one.digest('{"code":7}'), boxOf('one').digest('{"code":7}'))
  assert.notEqual(one.digest('{"code":7}'), other.digest('{"code":7}'))
  assert.ok(one.digest('x'.repeat(1000)).length <= 64)
})

async function encrypts({ open }: OutboxFixture): Promise<void> {
  const cipher = boxOf('a secret')
  const outbox = await open({ cipher })
  const order = { tenant: TENANT, key: 'key', deliveries: [SMS, MAIL].map(sender => ({ sender, event: '{"code":7}' })) }
  const accepted = await outbox.accept(order)
  assert.ok(accepted.kind === 'accepted')
  assert.equal((await outbox.accept(order)).kind, 'accepted')
  const { db } = outbox.connection
  const rows = await db.selectFrom('delivery_messages').select(['id', 'event']).execute()
  assert.ok(rows.every(({ event }) => !event.includes('code')))
  const [sms, mail] = accepted.ids
  const page = await outbox.list({ tenant: TENANT }, { before: null, limit: 9 })
  assert.deepEqual(
    page.deliveries.map(({ event }) => event),
    ['{"code":7}', '{"code":7}'],
  )
  // Whoever can write to the table cannot send the text of one sender through another one.
  const event = rows.find(({ id }) => id === mail)!.event
  await db.updateTable('delivery_messages').set({ event }).where('id', '=', sms!).execute()
  assert.equal((await outbox.get(TENANT, sms!))!.event, '')
  const sent: string[] = []
  const compose = async (delivery: Delivery): Promise<AttemptResult> => {
    sent.push(delivery.event)
    return DELIVERED
  }
  await runDue(runOf(await open({ cipher: boxOf('another') }), compose))
  assert.deepEqual(sent, [])
  const cause = 'the event is encrypted with another key'
  assert.equal(await readState(outbox, mail!), `waiting 1 ${cause}`)
  await db.updateTable('delivery_messages').set({ at_ms: 0 }).execute()
  await runDue(runOf(outbox, compose))
  assert.deepEqual(sent, ['{"code":7}'])
  assert.equal(await readState(outbox, mail!), 'delivered 2 HTTP 202')
}

async function countsBusy({ open }: OutboxFixture): Promise<void> {
  const outbox = await open({ clock: new TestClock() })
  // One order is on its way to the database at once; the others wait.
  const orders = Array.from({ length: 1005 }, (_, i) => outbox.accept(order(`text ${i}`)))
  const refused = (await Promise.all(orders)).filter(acceptance => acceptance.kind === 'refused')
  assert.deepEqual(new Set(refused.map(({ reason }) => reason)), new Set(['busy']))
  assert.ok(refused.length > 0)
  await outbox.accept(order('later'))
  const { acceptedTotal, refusedTotal } = await readCountsOf(outbox)
  assert.deepEqual([acceptedTotal, refusedTotal], [1006 - refused.length, refused.length])
}

async function storesOnce({ open }: OutboxFixture): Promise<void> {
  const outboxes = [await open(), await open()]
  const orders = Array.from({ length: 20 }, (_, i) => outboxes[i % 2]!.accept(order('one', 'contended')))
  const acceptances = await Promise.all(orders)
  const ids = acceptances.map(acceptance => (acceptance.kind === 'accepted' ? acceptance.ids[0] : acceptance.reason))
  assert.equal(new Set(ids).size, 1)
  assert.equal(acceptances.filter(acceptance => acceptance.kind === 'accepted' && !acceptance.isRepeated).length, 1)
  assert.equal((await readCountsOf(outboxes[0]!)).waiting, 1)
}

async function refusesBeyondLimits({ open }: OutboxFixture): Promise<void> {
  const limits = { eventBytesMax: 40, orderDeliveriesMax: 3, senderWaitingMax: 4, allWaitingMax: 6 }
  const outbox = await open({ limits })
  const many = (count: number, sender = SMS): AcceptOrder => ({
    tenant: TENANT,
    key: null,
    deliveries: numbered(count).map(event => ({ sender, event })),
  })
  const cases: readonly (readonly [AcceptOrder, string])[] = [
    [many(4), 'order-deliveries 3'],
    [order('é'.repeat(15)), 'event-bytes 40'],
    [many(3), 'accepted'],
    [many(2), 'sender-waiting 4'],
    [many(1), 'accepted'],
    [many(1), 'sender-waiting 4'],
    [many(3, MAIL), 'all-waiting 6'],
    [{ ...many(2), deliveries: [...many(1, MAIL).deliveries, ...many(1).deliveries] }, 'sender-waiting 4'],
    [many(2, MAIL), 'accepted'],
    [many(1, MAIL), 'all-waiting 6'],
  ]
  for (const [each, expected] of cases) {
    const acceptance = await outbox.accept(each)
    const told = acceptance.kind === 'refused' ? `${acceptance.reason} ${acceptance.limit}` : acceptance.kind
    assert.equal(told, expected)
  }
  assert.deepEqual(await readCountsOf(outbox), { waiting: 4, acceptedTotal: 4, refusedTotal: 5 })
  assert.deepEqual(await readCountsOf(outbox, MAIL), { waiting: 2, acceptedTotal: 2, refusedTotal: 3 })
}

async function keepsTenantsApart({ open }: OutboxFixture): Promise<void> {
  const limits = { senderWaitingMax: 4, tenantWaitingMax: 5, allWaitingMax: 100 }
  const outbox = await open({ limits })
  const other = { ...SMS, tenant: 'other.com' }
  await acceptAll(outbox, numbered(3))
  await acceptAll(outbox, numbered(2), MAIL)
  // Three orders of one transaction, of which the limit stops the second one.
  const answers = await Promise.all(
    [order('a', null, other.tenant), order('b'), order('c', null, other.tenant)].map(each => outbox.accept(each)),
  )
  assert.deepEqual(
    answers.map(answer => (answer.kind === 'refused' ? `${answer.reason} ${answer.limit}` : answer.kind)),
    ['accepted', 'tenant-waiting 5', 'accepted'],
  )
  assert.deepEqual(await readCountsOf(outbox), { waiting: 3, acceptedTotal: 3, refusedTotal: 1 })
  await acceptAll(outbox, numbered(2), other)
  // Replays keep the limit, too.
  await runDue(runOf(outbox, async () => ({ kind: 'failed', cause: 'HTTP 400' })))
  await acceptAll(outbox, numbered(3))
  assert.equal(await outbox.replay({ tenant: TENANT, channel: 'email' }), 2)
  assert.equal(await outbox.replay({ tenant: TENANT, channel: 'sms' }), 0)
  assert.equal(await outbox.replay({ tenant: other.tenant }), 4)
}

async function refusesOtherTenants({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  assert.throws(() => outbox.accept({ ...order('one'), tenant: 'other.com' }), TypeError)
}

async function listsPages({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const sms = await acceptAll(outbox, numbered(5))
  const mail = await acceptAll(outbox, numbered(3), MAIL)
  await acceptAll(outbox, numbered(3), { ...SMS, tenant: 'other.com' })
  const pages = async (filter: object): Promise<readonly string[]> => {
    const ids: string[] = []
    for (let before: string | null = null; ; ) {
      const page = await outbox.list({ tenant: TENANT, ...filter }, { before, limit: 2 })
      ids.push(...page.deliveries.map(({ id }) => id))
      if (page.next === null) return ids
      before = page.next
    }
  }
  assert.deepEqual(new Set(await pages({})), new Set([...mail, ...sms]))
  assert.deepEqual((await pages({})).toSorted().toReversed(), await pages({}))
  assert.deepEqual(new Set(await pages({ channel: 'sms' })), new Set(sms))
  assert.deepEqual(new Set(await pages({ channel: 'email', name: MAIL.name })), new Set(mail))
  assert.deepEqual(await pages({ state: 'dead' }), [])
  await outbox.senderDeleted(MAIL)
  assert.deepEqual(new Set(await pages({ state: 'dead' })), new Set(mail))
  assert.deepEqual(new Set(await pages({ state: 'waiting' })), new Set(sms))
}

/** Dead letters of the first texts. */
async function failing(outbox: Outbox, count: number): Promise<readonly string[]> {
  const ids = await acceptAll(outbox, numbered(count))
  await runDue(runOf(outbox, async () => ({ kind: 'failed', cause: 'HTTP 400' })))
  return ids
}

async function replays({ open }: OutboxFixture): Promise<void> {
  const outbox = await open({ limits: { senderWaitingMax: 3 } })
  const ids = [...(await failing(outbox, 3)), ...(await failing(outbox, 2))]
  assert.equal(await readState(outbox, ids[0]!), 'dead 1 HTTP 400')
  assert.equal(await outbox.replay({ tenant: 'other.com', ids }), 0)
  assert.equal(await outbox.replay({ tenant: TENANT, ids: [ids[4]!, 'unknown'] }), 1)
  assert.equal(await readState(outbox, ids[4]!), 'waiting 0 HTTP 400')
  assert.equal(await outbox.replay({ tenant: TENANT, ids: [ids[4]!] }), 0)
  assert.equal(await outbox.replay({ tenant: TENANT, channel: 'sms' }), 2)
  assert.equal(await outbox.replay({ tenant: TENANT, channel: 'sms' }), 0)
  await runDue(runOf(outbox, async () => DELIVERED))
  assert.equal(await readState(outbox, ids[4]!), 'delivered 1 HTTP 202')
  assert.equal(await outbox.replay({ tenant: TENANT }), 2)
  await runDue(runOf(outbox, async () => DELIVERED))
  const totals = { acceptedTotal: 5, deadTotal: 5, replayedTotal: 5, deliveredTotal: 5 }
  assert.deepEqual(await readCountsOf(outbox), { delivered: 5, ...totals })
}

async function drops({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const dead = await failing(outbox, 3)
  const [waiting] = await acceptAll(outbox, ['waits'])
  assert.equal(await outbox.drop({ tenant: 'other.com', ids: dead }), 0)
  assert.equal(await outbox.drop({ tenant: TENANT, ids: [dead[0]!, waiting!] }), 1)
  assert.equal(await outbox.drop({ tenant: TENANT, ids: [] }), 0)
  assert.equal(await outbox.get(TENANT, dead[0]!), undefined)
  assert.equal(await outbox.drop({ tenant: TENANT, channel: 'email' }), 0)
  assert.equal(await outbox.drop({ tenant: TENANT, channel: 'sms', name: SMS.name }), 2)
  assert.equal(await readState(outbox, waiting!), 'waiting 0')
  const totals = { acceptedTotal: 4, deadTotal: 3, droppedTotal: 3 }
  assert.deepEqual(await readCountsOf(outbox), { waiting: 1, ...totals })
}

async function orphans({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const ids = await acceptAll(outbox, numbered(3))
  const [other] = await acceptAll(outbox, ['other'], MAIL)
  assert.equal(await outbox.senderDeleted(SMS), 3)
  assert.equal(await outbox.senderDeleted(SMS), 0)
  assert.equal(await outbox.senderDeleted({ ...SMS, name: 'unknown' }), 0)
  assert.equal(await readState(outbox, ids[2]!), 'dead 0 the sender was deleted')
  assert.equal(await readState(outbox, other!), 'waiting 0')
  assert.deepEqual(await readCountsOf(outbox), { dead: 3, acceptedTotal: 3, deadTotal: 3 })
}

async function expires({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const retention = { deliveredMs: 1000, deliveredMax: 4, deadMs: 5000, deadMax: 2 }
  const outbox = await open({ clock, retention })
  const keyed = await outbox.accept(order('keyed', 'key'))
  await acceptAll(outbox, numbered(5))
  await runDue(runOf(outbox, async () => DELIVERED))
  const dead: string[] = []
  for (let i = 0; i < 3; i++) {
    dead.push(...(await failing(outbox, 1)))
    clock.ms++
  }
  assert.equal(await outbox.expire(), false)
  assert.deepEqual(await readState(outbox, dead[0]!), undefined)
  const totals = { acceptedTotal: 9, deliveredTotal: 6, deadTotal: 3 }
  assert.deepEqual(await readCountsOf(outbox), { delivered: 4, dead: 2, expiredTotal: 3, ...totals })
  clock.ms += 1000
  clock.isSettled = false
  await outbox.expire()
  assert.equal((await readCountsOf(outbox)).delivered, 4)
  clock.isSettled = true
  await outbox.expire()
  assert.deepEqual(await readCountsOf(outbox), { dead: 2, expiredTotal: 7, ...totals })
  const again = await outbox.accept(order('another', 'key'))
  assert.ok(keyed.kind === 'accepted' && again.kind === 'accepted' && !again.isRepeated)
  await outbox.senderDeleted(SMS)
  clock.ms += 5001
  await outbox.expire()
  assert.deepEqual(await outbox.counts(null), [])
}

async function keepsAreasApart({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const tenants = await open({ clock, limits: { allWaitingMax: 2 } })
  const options = { limits: { allWaitingMax: 2 }, retention: { deliveredMs: 0, deliveredMax: 0 } }
  const platform = await open({ clock, area: 'platform', ...options })
  const mail = { ...SMS, channel: 'platform' }
  await acceptAll(tenants, numbered(2))
  await acceptAll(platform, numbered(2), mail)
  await runDue(runOf(tenants, async () => DELIVERED, { node: 'a' }))
  assert.deepEqual([(await readCountsOf(tenants)).delivered, (await readCountsOf(tenants, mail)).waiting], [2, 2])
  await runDue(runOf(platform, async () => DELIVERED, { node: 'b' }))
  clock.ms++
  await platform.expire()
  assert.deepEqual(
    [(await readCountsOf(tenants)).delivered, (await readCountsOf(tenants, mail)).delivered],
    [2, undefined],
  )
  await tenants.accept(order('one', 'key'))
  const other = { tenant: TENANT, key: 'key', deliveries: [{ sender: mail, event: '{}' }] }
  const acceptance = await platform.accept(other)
  assert.ok(acceptance.kind === 'accepted' && !acceptance.isRepeated)
}
