/** Access control by client address: management APIs, key manager endpoints, and single paths. */
import { isTrue } from '../conditions.ts'
import { actsIf, allActIf, inert, live, type Rule, repeatedSection, required, section, type Values } from '../key.ts'
import { networks, flag, text } from '../kinds.ts'

const SERVLET = 'there is no servlet container'

const LISTENER = isTrue('management.enable')
const ROLES = { roles: ['api-key-manager'] } as const

const access = allActIf(LISTENER, {
  enable: live(flag(true, 'Admit only the listed addresses and this machine.')),
  allow: actsIf(
    isTrue('.enable'),
    live(networks([], 'Addresses that are admitted; empty: only this machine.')),
    'every address is admitted',
  ),
})

const RULES: readonly Rule<Values<typeof access>>[] = [
  {
    keys: ['enable'],
    must: 'while enable is false, every address is admitted',
    severity: 'warning',
    holds: it => it.enable,
  },
]

export const consoleAccess = section(
  'admin_console.control_access',
  'Client addresses that may use the APIs for publishers and administrators, and SCIM.',
  access,
  { ...ROLES, rules: RULES },
)

export const webAppAccess = section(
  'web_app.control_access',
  'Client addresses that may use the key manager endpoints and the API for developers.',
  access,
  { ...ROLES, rules: RULES },
)

export const servletFilter = repeatedSection(
  'servlet_access_control_filter',
  'A further restriction by client address, for paths that match a pattern.',
  allActIf(LISTENER, {
    filter_name: live(text('', 'Name of the filter, for the log.')),
    allow_ip_regex: live(
      required(text('', 'Pattern of the addresses that are admitted; it must match the whole address.')),
    ),
    url_pattern: live(
      text('/*', 'Paths to which the filter applies: one path, `/folder/*`, `*.ending`, or `/*` for all.'),
    ),
  }),
  ROLES,
)

export const webAppListener = section('web_app.listener', 'A listener for life-cycle events of web applications.', {
  class_name: inert(required(text('', 'Class of the listener.')), SERVLET),
})
