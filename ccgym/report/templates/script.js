// Decompress the figures of the page.
for (const image of document.querySelectorAll("img[data-packed]")) {
  const bytes = Uint8Array.from(atob(image.dataset.packed), (one) => one.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  new Response(unpacked).arrayBuffer().then((data) => {
    image.src = URL.createObjectURL(new Blob([data], { type: image.dataset.type }));
  });
}

// Columns with a better direction, and all columns of a sortable table, sort by a click on their heading: first the best
// or the smallest value, after a second click the reverse.
for (const head of document.querySelectorAll("th[data-better], table.sortable th")) {
  const body = head.closest("table").tBodies[0];
  const column = head.cellIndex;
  head.tabIndex = 0;
  head.title = "sort";
  const compare = (a, b) => a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  const sort = () => {
    const again = head.dataset.sorted === "first";
    const sign = (head.dataset.better === "max") !== again ? -1 : 1;
    const key = (cell) => (cell.dataset.key === undefined ? null : Number(cell.dataset.key));
    for (const other of head.parentNode.cells) {
      delete other.dataset.sorted;
      other.removeAttribute("aria-sort");
    }
    head.dataset.sorted = again ? "last" : "first";
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => row.cells[column]).sort((a, b) => {
      if (key(a) === null && key(b) === null) return head.dataset.better ? 0 : sign * compare(a, b);
      // Cells without a number are last.
      if (key(a) === null || key(b) === null) return key(a) === null ? 1 : -1;
      return sign * (key(a) - key(b));
    });
    body.append(...rows.map((cell) => cell.parentNode));
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sort();
  });
}
