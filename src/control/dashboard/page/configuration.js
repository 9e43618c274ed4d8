/** The effective configuration, fetched when it comes into sight and when somebody asks for it. */
import { byId, setText } from './dom.js'
import { Table } from './tables.js'

const APPLIES = { reload: 'after a reload', restart: 'after a restart', none: 'never (inert)' }

/** `unauthorized`: called where the session has ended. */
export function wireConfiguration(unauthorized) {
  const table = new Table(
    byId('configuration-table'),
    'Configuration',
    [
      { title: 'Key', text: row => row.key, isLong: true, isWide: true },
      { title: 'Value', text: row => row.value, isLong: true },
      { title: 'From', text: row => fromOf(row), isLong: true, tone: row => (row.where === '' ? 'off' : 'none') },
      { title: 'A change acts', text: row => APPLIES[row.appliesAfter] },
      { title: 'Meaning', text: row => row.meaning.replaceAll('`', ''), isLong: true },
    ],
    { filter: 'Filter keys', empty: 'Not loaded, or no key is set.' },
  )
  const [button, onlySet] = [byId('configuration-load'), byId('configuration-set')]
  let rows = []
  let isWanted = true
  const show = () => {
    const shown = rows.filter(({ where }) => where !== '' || !onlySet.checked)
    table.show(() => shown.map(row => [row.key, row]))
  }
  const load = async () => {
    isWanted = false
    button.disabled = true
    try {
      const response = await fetch('/dashboard/configuration')
      if (response.status === 401) return unauthorized()
      rows = (await response.json()).keys
      setText(button, 'Load again')
      show()
    } catch {
      setText(button, 'The gateway did not answer; try again')
    } finally {
      button.disabled = false
    }
  }
  onlySet.addEventListener('change', show)
  button.addEventListener('click', () => void load())
  // Most viewers never look at it.
  new IntersectionObserver(([entry]) => {
    if (entry.isIntersecting && isWanted) void load()
  }).observe(byId('configuration'))
  show()
}

function fromOf({ where, overridden }) {
  if (where === '') return 'default'
  return overridden.length === 0 ? where : `${where}; overrides ${overridden.join(', ')}`
}
