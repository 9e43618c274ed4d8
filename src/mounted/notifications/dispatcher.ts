/** Makes the message of an event by the configuration that its sender has now, and sends it. */
import { domainToASCII } from 'node:url'
import { AddressGuard } from '../../delivery/address-guard.ts'
import type { AttemptResult } from '../../delivery/attempt.ts'
import type { SenderId } from '../../delivery/delivery.ts'
import { type HttpMessage, HttpSender } from '../../delivery/http-sender.ts'
import type { SenderPace } from '../../delivery/sender-run.ts'
import { type MailMessage, SmtpSender } from '../../delivery/smtp-sender.ts'
import { mailMessage } from './mail-message.ts'
import type { NotificationEvent } from './notification-event.ts'
import type { ProviderFile } from './provider-file.ts'
import { Refused } from './refusals.ts'
import { type Channel, type SenderConfiguration, settingOf } from './sender-configuration.ts'
import { checkProviderUrl, checkSender } from './sender-request.ts'
import { SecretsUnreadable, type SenderStore } from './sender-store.ts'
import type { NotificationSettings } from './settings.ts'
import { smsMessage } from './sms-message.ts'

/** An event that no client has published, to check a sender with. */
const SAMPLE: NotificationEvent = {
  ...{ recipient: 'someone@example.com', text: 'text', isTemplate: false, subject: '', properties: {} },
}

export type Message =
  | { readonly channel: 'sms'; readonly http: HttpMessage }
  | { readonly channel: 'email'; readonly mail: MailMessage }

export class Dispatcher {
  readonly #senders: SenderStore
  readonly #providers: ProviderFile
  readonly #http: HttpSender
  readonly #smtp: SmtpSender

  readonly #pace: Pick<NotificationSettings, 'concurrency' | 'perSecond'>

  constructor(senders: SenderStore, providers: ProviderFile, settings: NotificationSettings) {
    const { allowedAddresses, concurrency } = settings
    this.#pace = settings
    const guard = new AddressGuard(allowedAddresses)
    this.#senders = senders
    this.#providers = providers
    this.#http = new HttpSender({ guard, connectionsMax: concurrency })
    this.#smtp = new SmtpSender({ guard, connectionsMax: concurrency })
  }

  /** Throws Refused where no message can be made with the sender, whatever the event is. */
  check(configuration: SenderConfiguration): void {
    checkSender(configuration)
    this.message(configuration, SAMPLE, '')
  }

  /** How fast a sender may send: as the settings say, and its provider. Rejects with errors of the database. */
  async pace({ tenant, channel, name }: SenderId): Promise<SenderPace> {
    const { concurrency, perSecond } = this.#pace
    if (channel !== 'sms') return { concurrency, perSecond }
    try {
      const { fields } = await this.#senders.show(tenant, channel, name)
      const provider = this.#providers.find(fields.get('provider') ?? '')
      const most = Math.min(perSecond ?? Number.POSITIVE_INFINITY, provider.perSecond)
      return {
        concurrency: Math.min(concurrency, provider.concurrency),
        perSecond: Number.isFinite(most) ? most : null,
      }
    } catch (error) {
      // The attempt of each message tells what is wrong.
      if (error instanceof Refused) return { concurrency, perSecond }
      throw error
    }
  }

  /** `id`: of the delivery, the same for every attempt. Throws Refused. */
  message(configuration: SenderConfiguration, event: NotificationEvent, id: string): Message {
    if (configuration.channel === 'email') {
      const [, domain = ''] = settingOf(configuration, 'fromAddress').split('@')
      const messageId = `<${id}@${domainToASCII(domain) || 'localhost'}>`
      return { channel: 'email', mail: mailMessage(configuration, event, messageId) }
    }
    const provider = this.#providers.find(configuration.fields.get('provider') ?? '')
    checkProviderUrl(configuration)
    return { channel: 'sms', http: smsMessage(configuration, provider, event, id) }
  }

  /** `claimedAt`: when the event was taken from the database (`performance.now()`); the sender is not older. */
  async attempt(
    { tenant, channel, name }: { readonly tenant: string; readonly channel: string; readonly name: string },
    event: NotificationEvent,
    { id, claimedAt }: { readonly id: string; readonly claimedAt: number },
    signal: AbortSignal,
  ): Promise<AttemptResult> {
    let message: Message
    try {
      message = this.message(await this.#senders.findForClaim(tenant, channel as Channel, name, claimedAt), event, id)
    } catch (error) {
      // The operator mends the file or the key; a tenant mends the sender, and replays.
      if (error instanceof SecretsUnreadable) return { kind: 'retry', cause: error.message, afterMs: null }
      if (!(error instanceof Refused)) throw error
      const { situation, message: cause } = error
      return situation === 'template-file' ? { kind: 'retry', cause, afterMs: null } : { kind: 'failed', cause }
    }
    return message.channel === 'sms' ? this.#http.send(message.http, signal) : this.#smtp.send(message.mail, signal)
  }
}
