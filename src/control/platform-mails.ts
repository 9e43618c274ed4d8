/**
 * The platform's own mails (`[apim.notification]`): stored in the outbox of the registry's database before the
 * operation that they tell of is acknowledged, and delivered beside everything else. A mail server that is down delays
 * nothing.
 */
import { SUPER_TENANT } from '../auth/account-names.ts'
import type { Configuration } from '../config/catalogue.ts'
import { AddressGuard } from '../delivery/address-guard.ts'
import type { AttemptResult } from '../delivery/attempt.ts'
import type { Delivery, SenderId } from '../delivery/delivery.ts'
import { DeliveryRun } from '../delivery/delivery-run.ts'
import { Outbox } from '../delivery/outbox.ts'
import { readMailbox, SmtpSender } from '../delivery/smtp-sender.ts'
import type { EventLog } from '../observe/events.ts'
import type { ManagedApi, Notices } from './admin-api/admin-services.ts'
import type { User, Workflow } from './registry/entities.ts'
import { ADMIN_ROLE } from './registry/management-scopes.ts'
import type { Registry } from './registry/registry.ts'
import * as texts from './platform-mail-texts.ts'

type MailSettings = Configuration['apim.notification']

interface PlatformMailsContext {
  readonly registry: Registry
  /** Read for each mail: a reload corrects what waits. */
  readonly settings: () => MailSettings
  readonly apis: () => Promise<readonly ManagedApi[]>
  readonly report: EventLog['report']
}

/** Content of an event of the outbox. Server and sender address are those of the moment of sending. */
interface StoredMail {
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** An account, which may have no address. */
interface Recipient {
  readonly name: string
  readonly tenant: string
}

/** Tenants list deliveries of their own; those of the platform belong to none of them. */
const SENDER: SenderId = { tenant: SUPER_TENANT, channel: 'platform', name: 'mail' }
const PACE = { concurrency: 5, perSecond: null }
const WAITING_MAX = 10_000
/** Mails of one transaction. */
const STORED_TOGETHER = 100
/** Administrators that are asked for an approval, and subscribers that hear of a new version. */
const ADMINISTRATORS_MAX = 100
const SUBSCRIBERS_MAX = 5000
/** RFC 8314 3.3: the port of TLS from the first byte. */
const TLS_PORT = 465
/** Milliseconds between two looks for new versions of APIs, which files and commands bring too. */
const VERSIONS_MS = 60_000
const FAILED_PAUSE_MS = 5000
const PAUSE_MS_MIN = 50
/** Claims of users that hold an address, the first one that is set counts. */
const ADDRESS_CLAIMS = ['http://wso2.org/claims/emailaddress', 'email', 'emailaddress'] as const
/** The operator has chosen the mail server. */
const ANYWHERE = ['0.0.0.0/0', '::/0']

export class PlatformMails implements Notices {
  readonly #context: PlatformMailsContext
  readonly #outbox: Outbox
  readonly #sender = new SmtpSender({ guard: new AddressGuard(ANYWHERE) })
  readonly #run: DeliveryRun
  readonly #stop = new AbortController()
  /** Versions that have been seen published, as `name:version`; null before the first look. */
  #published: Set<string> | null = null
  #versionsAtMs = Number.NEGATIVE_INFINITY
  #wake: () => void = () => {}
  #isWoken = false
  #ended: Promise<void>

  private constructor(context: PlatformMailsContext, outbox: Outbox) {
    this.#context = context
    this.#outbox = outbox
    this.#run = new DeliveryRun({
      outbox,
      compose: (delivery, signal) => this.#send(delivery, signal),
      pace: () => PACE,
      log: (level, event, fields) => context.report(level, `mail: ${event}`, fields),
    })
    this.#ended = this.#deliver()
  }

  /** Rejects with errors of the database. */
  static async open(context: PlatformMailsContext): Promise<PlatformMails> {
    const limits = { senderWaitingMax: WAITING_MAX, orderDeliveriesMax: STORED_TOGETHER }
    return new PlatformMails(context, await Outbox.open(context.registry.outboxDatabase, { limits, area: 'platform' }))
  }

  async approvalRequested(kind: Workflow['kind'], requester: Recipient, application: string): Promise<void> {
    const { users } = this.#context.registry
    await this.#notify('', texts.approvalRequested(kind, requester.name, application), () =>
      users.withRole(requester.tenant, ADMIN_ROLE, ADMINISTRATORS_MAX),
    )
  }

  async approvalDecided(workflow: Workflow): Promise<void> {
    const { id, requester: name, tenant } = workflow
    await this.#notify(`workflow:${id}`, texts.approvalDecided(workflow), () => this.#accounts([{ name, tenant }]))
  }

  async passwordReset(user: User): Promise<void> {
    await this.#notify('', texts.passwordReset(user.name), async () => [user])
  }

  async apiPublished({ name, version }: Pick<ManagedApi, 'name' | 'version'>): Promise<void> {
    const { subscriptions } = this.#context.registry
    // Whoever looks for new versions finds this one again.
    await this.#notify(`version:${name}:${version}`, texts.apiPublished(name, version), async () =>
      this.#accounts(await subscriptions.subscribersBeside(name, version, SUBSCRIBERS_MAX)),
    )
  }

  /** Looks for new versions of APIs, and for mails: after a reload. */
  wake(): void {
    this.#versionsAtMs = Number.NEGATIVE_INFINITY
    this.#isWoken = true
    this.#wake()
  }

  /** Counts, and the dead letters with their causes. */
  async status(): Promise<object> {
    const [counts] = (await this.#outbox.counts(SUPER_TENANT)).filter(({ sender }) => sender.channel === SENDER.channel)
    const { deliveries } = await this.#outbox.list({ ...SENDER, state: 'dead' }, { before: null, limit: 100 })
    return {
      waiting: counts?.waiting ?? 0,
      delivered: counts?.deliveredTotal ?? 0,
      dead: counts?.dead ?? 0,
      deadLetters: deliveries.map(({ id, event, cause, atMs }) => {
        const { to, subject } = JSON.parse(event) as StoredMail
        return { id, to, subject, cause, at: new Date(atMs).toISOString() }
      }),
    }
  }

  /** All dead letters wait again. Their number. */
  async retry(): Promise<number> {
    const replayed = await this.#outbox.replay(SENDER)
    this.#isWoken = true
    this.#wake()
    return replayed
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#wake()
    await this.#ended
    this.#sender.close()
  }

  /** Never rejects: the operation has happened. `key`: the same mails are stored once; '' for none. */
  async #notify(
    key: string,
    { subject, text }: texts.MailText,
    recipients: () => Promise<readonly User[]>,
  ): Promise<void> {
    const { report } = this.#context
    try {
      const mails = (await recipients()).flatMap(user => {
        const to = addressOf(user)
        if (to === '')
          report('info', 'mail not sent: the user has no e-mail address', { USER: user.name, SUBJECT: subject })
        return to === '' ? [] : [{ to, subject, text }]
      })
      for (let at = 0; at < mails.length; at += STORED_TOGETHER) {
        const deliveries = mails
          .slice(at, at + STORED_TOGETHER)
          .map(mail => ({ sender: SENDER, event: JSON.stringify(mail) }))
        const order = { tenant: SUPER_TENANT, key: key === '' ? null : `platform:${key}:${at}`, deliveries }
        const stored = await this.#outbox.accept(order)
        // A key that is used again: others have told of it, perhaps to other subscribers.
        if (stored.kind === 'refused' && stored.reason !== 'key-reused') {
          report('warn', 'mails dropped: too many wait', { COUNT: mails.length - at, LIMIT: stored.limit })
          break
        }
      }
      this.#isWoken = true
      this.#wake()
    } catch (error) {
      report('error', 'mails not stored', { SUBJECT: subject, CAUSE_OF_ERROR: (error as Error).message })
    }
  }

  async #accounts(names: readonly Recipient[]): Promise<readonly User[]> {
    const { users } = this.#context.registry
    const found: User[] = []
    for (const { name, tenant } of names) {
      const user = await users.find(name, tenant)
      if (user !== null) found.push(user)
    }
    return found
  }

  #send({ id, event }: Delivery, signal: AbortSignal): Promise<AttemptResult> {
    const settings = this.#context.settings()
    const { to, subject, text } = JSON.parse(event) as StoredMail
    const { from_address: from, hostname: host, port, username: user, password } = settings
    const domain = readMailbox(from)?.address.split('@')[1] ?? 'localhost'
    const server = {
      ...{ host, port, user, password },
      startTls: settings.enable_start_tls ? 'required' : 'off',
      implicitTls: port === TLS_PORT,
      isAuthenticated: settings.enable_authentication,
    } as const
    const about = { from, replyTo: '', to, subject, type: 'text', body: text, signature: '' } as const
    return this.#sender.send({ server, ...about, messageId: `<${id}@${domain}>` }, signal)
  }

  async #deliver(): Promise<void> {
    let isFailing = false
    while (!this.#stop.signal.aborted) {
      this.#isWoken = false
      let pauseMs = FAILED_PAUSE_MS
      try {
        await this.#findVersions()
        pauseMs = await this.#runDue()
        isFailing = false
      } catch (error) {
        // One report per outage of the database, or of the primary that knows the APIs.
        if (!isFailing) this.#context.report('warn', 'mails wait', { CAUSE_OF_ERROR: (error as Error).message })
        isFailing = true
      }
      await this.#pause(pauseMs)
    }
  }

  /** Milliseconds until there is more to do. */
  async #runDue(): Promise<number> {
    // A reload may have taken the mail server away.
    if (this.#context.settings().hostname === '') return VERSIONS_MS
    const { jobs, againMs } = await this.#run.due()
    for (const job of jobs) await this.#run.run(job, this.#stop.signal)
    return jobs.length > 0 ? PAUSE_MS_MIN : Math.min(againMs, VERSIONS_MS)
  }

  async #pause(ms: number): Promise<void> {
    if (this.#isWoken || this.#stop.signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, Math.max(PAUSE_MS_MIN, ms))
    await promise
    clearTimeout(timer)
  }

  async #findVersions(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#versionsAtMs < VERSIONS_MS) return
    const published = (await this.#context.apis()).filter(({ state }) => state === 'PUBLISHED')
    this.#versionsAtMs = nowMs
    const known = this.#published
    this.#published ??= new Set(published.map(labelOf))
    for (const api of published) {
      if (known === null || known.has(labelOf(api))) continue
      // A version that is blocked and published again is not new.
      known.add(labelOf(api))
      await this.apiPublished(api)
    }
  }
}

function labelOf({ name, version }: Pick<ManagedApi, 'name' | 'version'>): string {
  return `${name}:${version}`
}

/** '' where the user has none that a mail can go to. */
function addressOf({ claims }: User): string {
  const address = ADDRESS_CLAIMS.map(name => claims[name] ?? '').find(text => text !== '') ?? ''
  return readMailbox(address) === null ? '' : address
}
