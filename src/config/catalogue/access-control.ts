/** Who may reach the consoles, the web applications and single paths of them. */
import { inert, live, type Rule, repeatedSection, required, section, type Values } from '../key.ts'
import { cidrs, flag, text } from '../kinds.ts'

const SERVLET = 'there is no servlet container'

const READ_BY = ['primary/management-planning.ts'] as const

const access = {
  enable: live(flag(true, 'Let in the listed addresses and the machine itself alone.')),
  allow: live(cidrs([], 'Addresses that are let in; empty: the machine itself alone.')),
}

const RULES: readonly Rule<Values<typeof access>>[] = [
  {
    keys: ['enable'],
    must: 'while enable is false nobody is kept out by their address',
    severity: 'warning',
    holds: it => it.enable,
  },
  {
    keys: ['allow', 'enable'],
    must: 'allow has no effect while enable is false: everybody is let in',
    severity: 'warning',
    holds: it => it.enable || it.allow.length === 0,
  },
]

export const consoleAccess = section(
  'admin_console.control_access',
  'Who may reach what changes the gateway: the APIs for publishers and administrators, and users.',
  access,
  { rules: RULES, readBy: READ_BY },
)

export const webAppAccess = section(
  'web_app.control_access',
  'Who may reach what clients ask: the endpoints of the key manager and the API for developers.',
  access,
  { rules: RULES, readBy: READ_BY },
)

export const servletFilter = repeatedSection(
  'servlet_access_control_filter',
  'Who may reach paths that fit a pattern, besides what holds for all of them.',
  {
    filter_name: live(text('', 'Name of the filter, for the log.')),
    allow_ip_regex: live(
      required(text('', 'Pattern of the addresses that are let in, which all of an address has to match.')),
    ),
    url_pattern: live(
      text('/*', 'Paths that the filter is for: one, `/folder/*`, `*.ending`, or `/*` for all of the listener.'),
    ),
  },
  { readBy: READ_BY },
)

export const webAppListener = section('web_app.listener', 'A listener of life-cycle events of web applications.', {
  class_name: inert(required(text('', 'Class of the listener.')), SERVLET),
})
