/** Who may reach the consoles, the web applications and single paths of them. */
import { allInert, inert, type Rule, repeatedSection, required, section, type Values } from '../key.ts'
import { cidrs, flag, text } from '../kinds.ts'

const MANAGEMENT = 'not built yet: access to the management endpoints comes with them'
const SERVLET = 'there is no servlet container'

const access = {
  enable: flag(true, 'Let in the listed addresses alone.'),
  allow: cidrs([], 'Addresses that are let in; empty: the machine itself alone.'),
}

const RULES: readonly Rule<Values<typeof access>>[] = [
  {
    keys: ['allow', 'enable'],
    must: 'allow has no effect while enable is false: everybody is let in',
    severity: 'warning',
    holds: it => it.enable || it.allow.length === 0,
  },
]

export const consoleAccess = section(
  'admin_console.control_access',
  'Who may reach the management endpoints.',
  allInert(access, MANAGEMENT),
  { rules: RULES },
)

export const webAppAccess = section(
  'web_app.control_access',
  'Who may reach the web applications.',
  allInert(access, MANAGEMENT),
  { rules: RULES },
)

export const servletFilter = repeatedSection(
  'servlet_access_control_filter',
  'Who may reach paths that fit a pattern.',
  allInert(
    {
      filter_name: text('', 'Name of the filter.'),
      allow_ip_regex: text('', 'Pattern of the addresses that are let in.'),
      url_pattern: text('', 'Paths that the filter is for.'),
    },
    MANAGEMENT,
  ),
)

export const webAppListener = section('web_app.listener', 'A listener of life-cycle events of web applications.', {
  class_name: inert(required(text('', 'Class of the listener.')), SERVLET),
})
