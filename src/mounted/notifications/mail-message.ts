/** Makes a mail from a sender and an event. */
import type { MailMessage } from '../../delivery/smtp-sender.ts'
import { type NotificationEvent, renderEvent } from './notification-event.ts'
import { type SenderConfiguration, settingOf } from './sender-configuration.ts'
import { invalid, isTrue } from './sender-request.ts'

const SUBMISSION_PORT = 587
/** TLS from the first byte (RFC 8314 3.3). */
const SUBMISSIONS_PORT = 465

/** Throws Refused without a recipient. `messageId`: the same for every attempt. */
export function mailMessage(sender: SenderConfiguration, event: NotificationEvent, messageId: string): MailMessage {
  const { properties } = sender
  const isHtml = properties.get('email.type')?.toLowerCase() === 'text/html'
  const { text, subject } = renderEvent(event, isHtml)
  const to = event.recipient || properties.get('email.address') || ''
  if (to === '') throw invalid('recipient, and email.address of the sender, are missing')
  const user = settingOf(sender, 'userName')
  const port = Number(settingOf(sender, 'smtpPort') || SUBMISSION_PORT)
  const auth = properties.get('mail.smtp.auth')
  const startTls = properties.get('mail.smtp.starttls.enable')
  const address = settingOf(sender, 'fromAddress')
  const signature = properties.get('mail.smtp.signature')
  return {
    server: {
      host: settingOf(sender, 'smtpServerHost'),
      port,
      user,
      password: settingOf(sender, 'password'),
      startTls: startTls === undefined ? 'offered' : isTrue(startTls) ? 'required' : 'off',
      implicitTls: port === SUBMISSIONS_PORT,
      isAuthenticated: auth === undefined ? user !== '' : isTrue(auth),
    },
    from: signature === undefined ? address : `${signature} <${address}>`,
    replyTo: properties.get('mail.smtp.replyTo') ?? '',
    to,
    subject: subject || properties.get('email.subject') || '',
    type: isHtml ? 'html' : 'text',
    body: text,
    signature: '',
    messageId,
  }
}
