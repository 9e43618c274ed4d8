/** Parts of SVG pictures, with a background of their own: they look the same on light and dark pages. */

export const COLOUR = {
  paper: '#ffffff',
  ink: '#1f2933',
  faint: '#66727f',
  rule: '#e3e8ee',
  highlighted: '#0f766e',
  other: '#9fb0c0',
}
const FONTS = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
const MARGIN = 24

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

export function svgText(x: number, y: number, size: number, fill: string, words: string, attributes = ''): string {
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${fill}" ${attributes}>${escapeXml(words)}</text>`
}

export function svgDocument(width: number, height: number, heading: string, drawn: readonly string[]): string {
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" font-family="${FONTS}">`,
    `<title>${escapeXml(heading)}</title>`,
    `<rect width="${width}" height="${height}" fill="${COLOUR.paper}"/>`,
    svgText(MARGIN, 34, 17, COLOUR.ink, heading, 'font-weight="700"'),
    ...drawn,
    '</svg>',
  ].join('\n')}\n`
}
