/** Subjects and texts of the platform's own mails. No mail holds a password or a token. */
import type { Workflow } from './registry/entities.ts'

export interface MailText {
  readonly subject: string
  readonly text: string
}

/** Names of the requests, as mails word them. */
const ASKED: Readonly<Record<Workflow['kind'], string>> = {
  AM_APPLICATION_CREATION: 'the application',
  AM_APPLICATION_REGISTRATION_PRODUCTION: 'production keys of the application',
  AM_APPLICATION_REGISTRATION_SANDBOX: 'sandbox keys of the application',
  AM_SUBSCRIPTION_CREATION: 'a subscription of the application',
  AM_SUBSCRIPTION_UPDATE: 'another policy of a subscription of the application',
}

export function approvalRequested(kind: Workflow['kind'], requester: string, application: string): MailText {
  return {
    subject: `Approval requested: ${application}`,
    text: `${requester} asks for ${ASKED[kind]} ${application}.\n\nThe request waits for your decision (${kind}).\n`,
  }
}

export function approvalDecided({ kind, status, properties, description, id }: Workflow): MailText {
  const { applicationName = '', apiName, apiVersion } = properties
  const decision = status === 'APPROVED' ? 'approved' : 'rejected'
  const api = apiName === undefined ? '' : ` to ${apiName} ${apiVersion ?? ''}`
  const reason = description === '' ? '' : `\nReason: ${description}\n`
  return {
    subject: `Request ${decision}: ${applicationName}`,
    text: `Your request for ${ASKED[kind]} ${applicationName}${api} was ${decision}.\n${reason}\nRequest: ${id}\n`,
  }
}

export function passwordReset(user: string): MailText {
  return {
    subject: 'Your password was reset',
    text:
      `An administrator has set another password for the account ${user}. Sessions and tokens of the account have ` +
      'ended.\n\nThe administrator tells you the password. If you did not expect this, ask the administrator.\n',
  }
}

export function apiPublished(name: string, version: string): MailText {
  return {
    subject: `New version: ${name} ${version}`,
    text:
      `Version ${version} of the API ${name} is published. You are subscribed to another version, which goes on as ` +
      'before.\n',
  }
}
