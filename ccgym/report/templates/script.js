// Columns that say which direction is better sort by a click on their heading: the best first, then the worst first.
for (const head of document.querySelectorAll("th[data-better]")) {
  const body = head.closest("table").tBodies[0];
  const column = head.cellIndex;
  head.tabIndex = 0;
  head.title = "sort";
  const sort = () => {
    const descending = (head.dataset.better === "max") !== (head.dataset.sorted === "best");
    const value = (row) => {
      const key = row.cells[column].dataset.key;
      return key === undefined ? (descending ? -Infinity : Infinity) : Number(key);
    };
    for (const other of head.parentNode.cells) if (other !== head) delete other.dataset.sorted;
    head.dataset.sorted = head.dataset.sorted === "best" ? "worst" : "best";
    const rows = [...body.rows].sort((a, b) => (value(a) - value(b) || 0) * (descending ? -1 : 1));
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}
